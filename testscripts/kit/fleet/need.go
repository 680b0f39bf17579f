package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bijou/testscripts/kit/need"
)

// Tree returns the directory that hosts boot from, which testscripts/kit/fleet/base makes.
func Tree() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "bijou-test", "host-tree-2")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no tree for test hosts at %s: testscripts/kit/fleet/base makes it", path)
	}
	return path, nil
}

// missing returns the reason why this machine cannot run a fleet, or nil.
func missing() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("test hosts need root")
	}
	for _, program := range []string{"systemd-nspawn", "unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("test hosts need %s: .ci/setup long installs it", program)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("test hosts need namespaces: %v: %s", err, out)
	}
	_, err := Tree()
	return err
}

// Need skips the test with one line if this machine cannot run a fleet, or fails it if BIJOU_TEST_REQUIRE
// names nspawn.
func Need(t testing.TB) {
	t.Helper()
	if err := missing(); err != nil {
		need.Skip(t, "nspawn", err)
	}
}
