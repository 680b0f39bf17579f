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

// LeftOver returns the processes that a run has left running, each as "1234 (mysqld)". If there are more than
// maxLeftOver, the last element is the number of the others, as "3 more". LeftOver finds processes by the run's
// client id in their environment. Unless this process runs as root, LeftOver does not find processes of other
// users. It returns nil if clientID is empty, or if it cannot list the processes.
func LeftOver(clientID string) (names []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil || clientID == "" {
		return nil
	}

	unnamed := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !hasClientID(pid, clientID) {
			continue
		}

		if len(names) == maxLeftOver {
			unnamed++
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm")) // empty if the process has just ended
		names = append(names, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(name))))
	}

	if unnamed > 0 {
		names = append(names, fmt.Sprintf("%d more", unnamed))
	}
	return names
}

// hasClientID reports whether the process is running, and has inherited the client id from a hook's
// environment.
func hasClientID(pid int, clientID string) bool {
	st, err := osutil.ReadProcStat(pid)
	if err != nil || st.IsGone() {
		return false
	}

	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(environ, []byte("JUJU_CLIENT_ID="+clientID+"\x00"))
}
