package necoupdates

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/github"
	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/bootworld"
	"bijou/testscripts/kit/need"
)

// beforeHealth is the commit of a binary whose workers do not check health, and whose leaders do not
// count failed lookups for releases.
const beforeHealth = "79bb8ef382fb58588a1c9b25b2adf8fd84be2352"

// TestHealthInAMixedFleet runs one former server and one current server, each of which leads in turn. Each
// must be able to read the other's records. The health of a server whose worker does not check it must be
// unknown, even if a worker that does check wrote there before.
func TestHealthInAMixedFleet(t *testing.T) {
	need.Whole(t)
	versions.Need(t)
	own, err := os.Executable()
	check(t, err)
	dir := t.TempDir()
	server := github.New()
	t.Cleanup(server.Close)
	const plan = "components:\n- {name: a, strategy: any, services: [a.service]}\n"
	const services = "#!/bin/sh\ncd $(dirname $0)\ncase $1 in\nstart|restart) touch $2.$LRN ;;\nstop) rm -f $2.$LRN ;;\nis-active) [ -e $2.$LRN ] ;;\nesac\n"
	check(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte(services), 0o755))
	for name, binary := range map[string]string{"former": versions.At(t, beforeHealth), "today": own} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		data, err := os.ReadFile(binary)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(dir, name, "bijou"), data, 0o755))
		check(t, os.WriteFile(filepath.Join(dir, name, "manifest.yaml"), []byte("version: 1.0-1\n"+plan), 0o644))
		for _, applet := range []string{"neco", "neco-updater", "neco-worker"} {
			check(t, os.Symlink("bijou", filepath.Join(dir, name, applet)))
		}
	}

	command := func(lrn int, words ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, words[0]), words[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db"), fmt.Sprint("LRN=", lrn))
		return c
	}
	start := func(lrn int, words ...string) (stop func()) {
		c := command(lrn, words...)
		check(t, c.Start())
		stop = func() { _ = c.Process.Signal(os.Interrupt); _ = c.Wait() }
		t.Cleanup(stop)
		return stop
	}
	neco := func(of string, words ...string) string {
		out, _ := command(0, append([]string{of + "/neco"}, words...)...).CombinedOutput()
		return string(out)
	}
	patience := await.Poll{Limit: 2 * time.Minute, Pause: 200 * time.Millisecond}
	shows := func(of, words string) {
		t.Helper()
		await.Until(t, patience, fmt.Sprintf("%s neco status says %q", of, words), func() string {
			said := neco(of, "status")
			return await.Unless(strings.Contains(said, words), "it says\n%s", said)
		})
	}
	worker := func(of string, lrn int) (stop func()) {
		return start(lrn, of+"/neco-worker", "--lrn", fmt.Sprint(lrn), "--dir", filepath.Join(dir, fmt.Sprint("w", lrn)), "--services", filepath.Join(dir, "systemctl"))
	}

	neco("former", "init")
	for _, words := range []string{"github-url " + server.URL(), "github-repository " + github.Repository, "survey-interval 1s", "check-update-interval 1s"} {
		neco("former", append([]string{"config", "set"}, strings.Fields(words)...)...)
	}
	neco("former", "bootserver", "add", "0", "1")
	files, err := bootworld.Installable("release-1.0-1", plan, "")
	check(t, err)
	server.Publish(github.Release{Tag: "release-1.0-1", Files: files})
	worker("former", 0)
	stopWorker := worker("today", 1)
	stop := start(0, "former/neco-updater")
	shows("today", "\n1       1.0-1")
	neco("today", "config", "set", "env", "production")
	shows("today", "update    1 to 1.0-1 on servers 0 and 1, attempt 1: succeeded")

	// The former leader does not know which components are ill. The current one knows that, except for the
	// other server.
	await.Until(t, patience, "the worker of today has looked", func() string {
		said := neco("today", "status", "--format", "json")
		return await.Unless(strings.Contains(said, `"ill":{}`), "%s", said)
	})
	check(t, os.Remove(filepath.Join(dir, "a.service.1")))
	check(t, os.Remove(filepath.Join(dir, "a.service.0")))
	shows("former", "state     up to date: 1.0-1")
	stop()
	stop = start(0, "today/neco-updater")
	shows("today", "state     degraded: server 1, a: a.service does not run; to repair that: neco repair")
	if said := neco("today", "status"); strings.Contains(said, "finding   server 0") {
		t.Errorf("of the server whose worker does not look it says\n%s", said)
	}
	shows("former", "server 1, a: a.service does not run")

	// The next leader continues the count of failed lookups.
	check(t, server.Misbehave(github.Denied))
	shows("today", "times since")
	neco("today", "config", "set", "max-check-age", "5s")
	stop()
	stop = start(0, "former/neco-updater")
	shows("former", "401 Bad credentials")
	shows("former", "state     up to date: 1.0-1")
	stop()
	stop = start(0, "today/neco-updater")
	shows("today", "check the source of releases (neco config list)")
	check(t, server.Misbehave(github.None))
	shows("today", "state     degraded: server 1, a: a.service does not run; to repair that: neco repair")

	// The former worker runs again. It must not report the other worker's findings as its own.
	stopWorker()
	worker("former", 1)
	shows("today", "state     up to date: 1.0-1")
	stop()
	start(0, "former/neco-updater")
	shows("former", "leader    process")
	shows("former", "state     up to date: 1.0-1")
}
