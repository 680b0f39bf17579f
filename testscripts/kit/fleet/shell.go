package fleet

import (
	"fmt"
	"strings"
	"testing"

	"bijou/testscripts/kit/await"
)

// Shell runs a shell's line on the host and returns what it prints, stdout and stderr.
func (h *Host) Shell(line string) (string, error) { return h.Exec("bash", "-c", line) }

// On runs a shell's line that must succeed, and returns what it prints.
func (h *Host) On(t testing.TB, line string) string {
	t.Helper()
	out, err := h.Shell(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Await waits until a shell's line prints what is wanted, and what else it will.
func (h *Host) Await(t testing.TB, p await.Poll, line, want string) {
	t.Helper()
	await.Until(t, p, fmt.Sprintf("%s says %q", line, want), func() string {
		out, _ := h.Shell(line)
		return await.Unless(strings.Contains(out, want), "it says\n%s", out)
	})
}

// Report is what the i-th line prints on the i-th host: what somebody wants to know when
// something went wrong.
func Report(hosts []*Host, lines func(i int) string) string {
	var all strings.Builder
	for i, h := range hosts {
		out, err := h.Shell(lines(i))
		fmt.Fprintf(&all, "--- %s: %v\n%s", h.Name, err, out)
	}
	return all.String()
}
