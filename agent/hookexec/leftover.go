package hookexec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/state/osutil"
)

// maxLeftOver limits the number of processes that LeftOver names.
const maxLeftOver = 10

// LeftOver returns the processes that a run has left running, each as "1234 (mysqld)". It finds them by the
// run's client id in their environment. Unless this process runs as root, it does not find processes of other
// users.
func LeftOver(clientID string) (names []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil || clientID == "" {
		return nil
	}

	more := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !hasClientID(pid, clientID) {
			continue
		}

		if len(names) == maxLeftOver {
			more++
			continue
		}
		// If the process has just ended, its name is left out.
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		names = append(names, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(name))))
	}

	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}

// hasClientID reports whether the process has the hook's client id in its environment, which it inherits from
// the hook.
func hasClientID(pid int, clientID string) bool {
	st, err := osutil.ReadProcStat(pid)
	if err != nil || st.IsGone() {
		return false
	}

	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(environ, []byte("JUJU_CLIENT_ID="+clientID+"\x00"))
}
