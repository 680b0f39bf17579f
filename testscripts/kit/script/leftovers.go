package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// destroyLeftovers destroys all environments below a directory, since a script may have made its own
// BIJOU_HOME.
func destroyLeftovers(folder string) {
	_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, _ error) error {
		if d == nil || d.Name() != "environment.yaml" {
			return nil
		}
		dir := filepath.Dir(path)
		destroy := exec.Command("juju", "destroy-environment", "-y", "--force", filepath.Base(dir))
		destroy.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(dir))
		if out, err := destroy.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "cannot clean up %s: %v\n%s", dir, err, out)
		}
		return filepath.SkipDir
	})
}

// StopLeftovers kills servers and daemons of test charms below a BIJOU_HOME that a failed script left
// running. A script that passed leaves none.
func StopLeftovers(home string) {
	units := filepath.Join(home, "*", "machines", "*", "agents", "*")
	for _, pattern := range []string{"redis/pid", "daemon.pid", "agent.pid"} {
		files, _ := filepath.Glob(filepath.Join(units, pattern))
		for _, f := range files {
			data, _ := os.ReadFile(f)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
