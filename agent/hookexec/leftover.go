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

// maxLeftOver bounds the processes that LeftOver names.
const maxLeftOver = 10

// LeftOver names the processes that a run has left running, each as "1234 (mysqld)": those that began
// with its client id in their environment. It knows of no process of another user, unless this one
// is root.
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
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		names = append(names, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(name))))
	}

	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}

// hasClientID reports whether the process has the hook's id in its environment, and so was started by it.
func hasClientID(pid int, clientID string) bool {
	st, err := osutil.ReadProcStat(pid)
	if err != nil || st.IsGone() {
		return false
	}

	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(environ, []byte("JUJU_CLIENT_ID="+clientID+"\x00"))
}
