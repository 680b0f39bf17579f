package necoupdates

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/github"
	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/bootworld"
	"bijou/testscripts/kit/need"
)

// beforeDigests is the commit of a binary that writes no digests into requests, records and presences.
const beforeDigests = "9138b84f34be35570f045053a5a2a0008b5aa135"

// TestGoingOver updates two servers from a binary without digests to this one, and then to another
// release. Missing digests must not count as a difference.
func TestGoingOver(t *testing.T) {
	need.Whole(t)
	versions.Need(t)
	former := versions.At(t, beforeDigests)
	dir := t.TempDir()
	server := github.New()
	t.Cleanup(server.Close)
	state := "NECO_STATE=sqlite:" + filepath.Join(dir, "neco.db")
	const plan = "components:\n- {name: a, strategy: stop-all, services: [a.service]}\n- {name: b, strategy: rolling, services: [b.service]}\n"
	check(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
	command := func(words ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, words[0]), words[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), state)
		return c
	}
	start := func(words ...string) {
		c := command(words...)
		check(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	neco := func(words ...string) string {
		out, _ := command(append([]string{"s0/neco"}, words...)...).CombinedOutput()
		return string(out)
	}
	patience := await.Poll{Limit: 3 * time.Minute, Pause: 200 * time.Millisecond}
	shows := func(all ...string) {
		t.Helper()
		await.Until(t, patience, fmt.Sprintf("neco status says %q", all), func() string {
			said := neco("status")
			missing := slices.ContainsFunc(all, func(words string) bool { return !strings.Contains(said, words) })
			return await.Unless(!missing, "it says\n%s", said)
		})
	}
	for _, s := range []string{"s0", "s1"} {
		check(t, os.Mkdir(filepath.Join(dir, s), 0o755))
		data, err := os.ReadFile(former)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(dir, s, "bijou"), data, 0o755))
		check(t, os.WriteFile(filepath.Join(dir, s, "manifest.yaml"), []byte("version: 1.0-1\n"+plan), 0o644))
		for _, name := range []string{"neco", "neco-updater", "neco-worker"} {
			check(t, os.Symlink("bijou", filepath.Join(dir, s, name)))
		}
	}
	neco("init")
	for _, words := range []string{"config set github-url " + server.URL(), "config set github-repository " + github.Repository, "bootserver add 0 1"} {
		neco(strings.Fields(words)...)
	}
	for n, s := range []string{"s0", "s1"} {
		start(s+"/neco-worker", "--lrn", string(rune('0'+n)), "--dir", filepath.Join(dir, "w"+s), "--services", filepath.Join(dir, "systemctl"))
	}
	start("s0/neco-updater")
	shows("\n0       1.0-1", "\n1       1.0-1", "leader    process")

	// leads returns the time at which the updater became the leader.
	leads := func() string {
		return regexp.MustCompile(`"since":"[^"]*"`).FindString(neco("status", "--format", "json"))
	}
	before := leads()

	publish := func(tag string) {
		files, err := bootworld.Installable(tag, plan, "")
		check(t, err)
		server.Publish(github.Release{Tag: tag, Files: files})
	}
	publish("release-2.0-1")
	neco("config", "set", "env", "production")
	shows("update    1 to 2.0-1 on servers 0 and 1, attempt 1: succeeded", "\n0       2.0-1", "\n1       2.0-1")
	shows("state     up to date: 2.0-1")
	await.Until(t, patience, "the updater goes over", func() bool { return leads() != "" && leads() != before })
	if request := neco("status", "--format", "json"); strings.Contains(request, `"sums"`) {
		t.Errorf("the leader of before has written digests: %s", request)
	}
	publish("release-3.0-1")
	neco("update", "--now")
	shows("state     up to date: 3.0-1", "update    2 to 3.0-1 on servers 0 and 1, attempt 1: succeeded")
	if request := neco("status", "--format", "json"); !strings.Contains(request, `"sums"`) {
		t.Errorf("the leader of today knows no digests: %s", request)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
