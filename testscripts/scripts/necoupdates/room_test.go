package necoupdates

import (
	"os"
	"os/exec"
	"path/filepath"
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

// TestRoomOfBoth runs the former binary and this one together with a release that is far too large for the
// server. If the former worker does not record its free space, or the former leader does not check it, the
// update begins, as it did before. If both consider the space, the update does not begin.
func TestRoomOfBoth(t *testing.T) {
	need.Whole(t)
	former := versions.Former(t)
	current, err := os.Executable()
	check(t, err)
	knows := versions.FormerHas("updater/record/room.go")

	for _, c := range []struct {
		name, worker, leader string
		begins               bool
	}{
		{"a former worker", former, current, !knows},
		{"a former leader", current, former, !knows},
		{"this binary", current, current, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			server := github.New()
			t.Cleanup(server.Close)
			install := func(folder, binary string) {
				folder = filepath.Join(dir, folder)
				check(t, os.Mkdir(folder, 0o755))
				data, err := os.ReadFile(binary)
				check(t, err)
				check(t, os.WriteFile(filepath.Join(folder, "bijou"), data, 0o755))
				check(t, os.WriteFile(filepath.Join(folder, "manifest.yaml"), []byte("version: 1.0-1\ncomponents:\n- {name: a, strategy: any, services: [a.service]}\n"), 0o644))
				for _, name := range []string{"neco", "neco-updater", "neco-worker"} {
					check(t, os.Symlink("bijou", filepath.Join(folder, name)))
				}
			}
			install("w", c.worker)
			install("l", c.leader)
			command := func(words ...string) *exec.Cmd {
				cmd := exec.Command(filepath.Join(dir, words[0]), words[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db"))
				return cmd
			}
			start := func(words ...string) {
				cmd := command(words...)
				check(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			}
			neco := func(from, line string) string {
				out, _ := command(append([]string{from + "/neco"}, strings.Fields(line)...)...).CombinedOutput()
				return string(out)
			}
			// shows waits until the status has one of the texts.
			shows := func(from string, texts ...string) {
				t.Helper()
				await.Until(t, await.Poll{Limit: 2 * time.Minute, Pause: 200 * time.Millisecond}, "neco status says "+texts[0], func() string {
					said := neco(from, "status")
					has := slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(said, text) })
					return await.Unless(has, "it says\n%s", said)
				})
			}

			for _, line := range []string{
				"init", "config set github-url " + server.URL(), "config set github-repository " + github.Repository,
				"config set survey-interval 1s", "bootserver add 1",
			} {
				neco("l", line)
			}
			start("w/neco-worker", "--lrn", "1", "--dir", filepath.Join(dir, "state"), "--services", "/bin/true")
			start("l/neco-updater")
			shows("l", "\n1       1.0-1")
			// In all other cases no worker ever reports its free space.
			if c.worker == current || knows {
				await.Until(t, await.Poll{Limit: time.Minute}, "the worker says how much room there is", func() bool {
					return strings.Contains(neco("w", "status --format json"), `"room":[`)
				})
			}
			large := "components:\n- {name: a, strategy: any, services: [a.service], artifact: {deb: {url: \"" + server.URL() + "bytes/8000000000000000\", sha256: \"" + strings.Repeat("0", 64) + "\"}}}\n"
			files, err := bootworld.Installable("release-1.1-1", large, "")
			check(t, err)
			server.Publish(github.Release{Tag: "release-1.1-1", Files: files})
			neco("l", "config set env production")

			// Each binary reads records of the other.
			for _, from := range []string{"l", "w"} {
				if c.begins {
					shows(from, "\nupdate    1 to 1.1-1 on servers 1, attempt 1: ")
					continue
				}
				shows(from, "not enough disk space", "no room") // the former binary has other words
			}
		})
	}
}
