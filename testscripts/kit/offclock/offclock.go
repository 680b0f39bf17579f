// Package offclock builds the product with a clock that is off by the number of seconds in a file,
// since all processes of a kernel share its clock.
package offclock

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// reads is the line in which Go's package time reads the clock.
const reads = "sec, nsec, mono := runtimeNow()\n"

// addition is an additional file of Go's package time. It changes only the time of day; durations are
// measured with a different clock. Go also reads the clock in places that cannot make calls, so the added
// code maps the file instead of reading it.
const addition = `package time

import "syscall"

var clockFile = mapClockFile()

func mapClockFile() []byte {
	fd, err := syscall.Open(%q, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	data, _ := syscall.Mmap(fd, 0, 16, syscall.PROT_READ, syscall.MAP_SHARED)
	return data
}

func clockOffset() (n int64) {
	sign := int64(1)
	for _, c := range clockFile {
		switch {
		case c == '-':
			sign = -1
		case '0' <= c && c <= '9':
			n = 10*n + int64(c-'0')
		}
	}
	return sign * n
}
`

// Build builds bijou at path. Whenever the binary reads the clock, it adds the number of seconds
// in the file, which has at most 16 characters. It adds nothing if the file did not exist when the
// process began. Write the file in place.
func Build(t testing.TB, path, file string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	check(t, err)
	source := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(source)
	check(t, err)
	if strings.Count(string(text), reads) != 1 {
		t.Fatalf("this Go reads the clock elsewhere than by %q in %s", reads, source)
	}
	dir := t.TempDir()
	changed, added, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "offclock.go"), filepath.Join(dir, "overlay.json")
	check(t, os.WriteFile(changed, []byte(strings.Replace(string(text), reads, reads+"\tsec += clockOffset()\n", 1)), 0o600))
	check(t, os.WriteFile(added, fmt.Appendf(nil, addition, file), 0o600))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		source: changed, filepath.Join(filepath.Dir(source), "offclock.go"): added,
	}})
	check(t, err)
	check(t, os.WriteFile(overlay, list, 0o600))
	build := exec.Command("go", "build", "-overlay", overlay, "-trimpath", "-ldflags=-s -w", "-o", path, "bijou")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
