package necoupdates

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestFormerAndFolder runs the previous binary beside this one, with releases in a directory, which it may
// not support. Its updater must find none of the releases. Its worker must report that no source is
// configured. If it sets a second source, this binary must report that two are set.
func TestFormerAndFolder(t *testing.T) {
	need.Whole(t)
	if versions.FormerHas("updater/release/folder.go") {
		t.Skip("the binary that landed before knows folders")
	}
	dir := t.TempDir()
	today, err := os.Executable()
	check(t, err)
	for name, from := range map[string]string{"former": versions.Former(t), "today": today} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		check(t, exec.Command("cp", from, filepath.Join(dir, name, "bijou")).Run())
		check(t, os.WriteFile(filepath.Join(dir, name, "manifest.yaml"), []byte("version: 1.0-1\ncomponents:\n- {name: a, strategy: any}\n"), 0o644))
		for _, link := range []string{"neco", "neco-updater", "neco-worker"} {
			check(t, os.Symlink("bijou", filepath.Join(dir, name, link)))
		}
	}
	check(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte("components:\n- {name: a, strategy: any}\n"), 0o644))

	command := func(words ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, words[0]), words[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db"))
		return c
	}
	start := func(words ...string) (stop func()) {
		c := command(words...)
		check(t, c.Start())
		stop = func() { _ = c.Process.Signal(os.Interrupt); _ = c.Wait() }
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return stop
	}
	says := func(words ...string) string {
		out, _ := command(words...).CombinedOutput()
		return string(out)
	}
	shows := func(all ...string) {
		t.Helper()
		await.Until(t, await.Poll{Limit: 3 * time.Minute, Pause: 200 * time.Millisecond}, "neco status says it", func() string {
			said := says("today/neco", "status")
			missing := slices.ContainsFunc(all, func(words string) bool { return !strings.Contains(said, words) })
			return await.Unless(!missing, "%q: it says\n%s", all, said)
		})
	}

	for _, words := range []string{"init", "config set release-folder " + dir + "/out", "config set env production", "bootserver add 0"} {
		said, err := command(append([]string{"today/neco"}, strings.Fields(words)...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", words, err, said)
		}
	}
	if said, err := command("today/neco", "release", "plan.yaml", "--version", "2.0-1", "-o", "out").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	stopUpdater := start("former/neco-updater")
	stopWorker := start("former/neco-worker", "--lrn", "0", "--dir", filepath.Join(dir, "w"), "--services", "true")
	shows("leader    process", "\n0       1.0-1")
	if said := says("former/neco", "update", "--now"); !strings.Contains(said, "it is not configured where releases are") {
		t.Errorf("the former neco says %q", said)
	}
	shows("no release is known yet")
	stopUpdater()

	start("today/neco-updater")
	shows("state     stopped: server 0, step install: cannot install 2.0-1: no repository is configured")
	stopWorker()
	start("today/neco-worker", "--lrn", "0", "--dir", filepath.Join(dir, "w"), "--services", "true")
	shows("\n0       1.0-1")
	says("today/neco", "retry")
	shows("state     up to date: 2.0-1", "\n0       2.0-1")

	says("former/neco", "config", "set", "github-repository", "bijou/boot")
	shows("no updates: release-folder and github-repository are both set")
}
