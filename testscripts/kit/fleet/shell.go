package fleet

import (
	"fmt"
	"strings"
	"testing"

	"bijou/testscripts/kit/await"
)

// Shell runs a shell command on the host and returns its stdout and stderr.
func (h *Host) Shell(line string) (string, error) { return h.Exec("bash", "-c", line) }

// On runs a shell command that must succeed, and returns its output.
func (h *Host) On(t testing.TB, line string) string {
	t.Helper()
	out, err := h.Shell(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Await waits until the output of a shell command contains want.
func (h *Host) Await(t testing.TB, p await.Poll, line, want string) {
	t.Helper()
	await.Until(t, p, fmt.Sprintf("%s says %q", line, want), func() string {
		out, _ := h.Shell(line)
		return await.Unless(strings.Contains(out, want), "it says\n%s", out)
	})
}

// Report returns the output of the i-th command on the i-th host, for diagnosis after a failure.
func Report(hosts []*Host, lines func(i int) string) string {
	var all strings.Builder
	for i, h := range hosts {
		out, err := h.Shell(lines(i))
		fmt.Fprintf(&all, "--- %s: %v\n%s", h.Name, err, out)
	}
	return all.String()
}
