package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/terminal"
)

func openTerminal(t *testing.T, s Size) (outer, inner *os.File) {
	t.Helper()
	outer, inner, err := terminal.Open(uint16(s.Height), uint16(s.Width))
	if err != nil {
		t.Skip("skip:", err)
	}
	t.Cleanup(func() { outer.Close(); inner.Close() })
	return outer, inner
}

// readUntil reads a terminal's output up to and including a mark.
func readUntil(t *testing.T, outer *os.File, mark string) string {
	t.Helper()
	var all []byte
	for chunk := make([]byte, 4096); !strings.HasSuffix(string(all), mark); {
		n, err := outer.Read(chunk)
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		all = append(all, chunk[:n]...)
	}
	return strings.ReplaceAll(strings.TrimSuffix(string(all), mark), "\r\n", "\n")
}

func TestScreenOnATerminal(t *testing.T) {
	outer, inner := openTerminal(t, Size{Width: 6, Height: 4})
	t.Setenv("TERM", "xterm")
	s := NewScreen(inner)
	for _, text := range []string{"one\ntwo\n", "one\ntwo\n", "longer line\n", "1\n2\n3\n4\n5\n"} {
		if err := s.Show(text, "---\n"); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(inner, "END")
	want := "\rone\x1b[K\ntwo\x1b[K\n\x1b[J" + "\x1b[2A\rlonger\x1b[K\n\x1b[J" + "\x1b[1A\r1\x1b[K\n2\x1b[K\n... 3 \x1b[K\n\x1b[J"
	if diff := cmp.Diff(want, readUntil(t, outer, "END")); diff != "" {
		t.Error(diff)
	}
}

func TestScreenElsewhere(t *testing.T) {
	_, inner := openTerminal(t, Size{Width: 6, Height: 4})
	t.Setenv("TERM", "dumb")
	if CanRedraw(inner) || CanColour(inner) {
		t.Error("a dumb terminal is drawn on")
	}
	var out bytes.Buffer
	s := NewScreen(&out)
	for _, text := range []string{"one\n", "one\n", "two\n"} {
		if err := s.Show(text, "---\n"); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "one\n---\ntwo\n" {
		t.Errorf("%q", out.String())
	}
}

func TestFit(t *testing.T) {
	tests := []struct{ text, want string }{
		{"short\n", "short\n"},
		{"a line that is long\n", "a line tha\n"},
		{"äöüäöüäöüäöü\n", "äöüäöüäöüä\n"},
		{Paint(Red, "a line that is long") + "\n", "\x1b[31ma line tha\x1b[0m\n"},
		{Paint(Red, "ten chars.") + "\n", Paint(Red, "ten chars.") + "\n"},
		{"1\n2\n3\n4\n", "1\n2\n3\n4\n"},
		{"1\n2\n3\n4\n5\n", "1\n2\n3\n... 2 more\n"},
	}
	for _, tt := range tests {
		if got := Fit(tt.text, Size{Width: 10, Height: 5}); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestBar(t *testing.T) {
	tests := []struct {
		width, done, total int
		want               string
	}{
		{80, 0, 500, "units [" + strings.Repeat(" ", 40) + "] 0 of 500"},
		{80, 250, 500, "units [" + strings.Repeat("#", 20) + strings.Repeat(" ", 20) + "] 250 of 500"},
		{30, 250, 500, "units [#####     ] 250 of 500"},
		{20, 250, 500, "units 250 of 500"},
		{8, 250, 500, "units 2"},
	}
	for _, tt := range tests {
		got := formatBar("units", tt.done, tt.total, tt.width)
		if got != tt.want || len(got) >= tt.width {
			t.Errorf("%d columns: %q, want %q", tt.width, got, tt.want)
		}
	}
}

// fakeClock is a clock that moves only when the test sets it.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time { return c.at }

func TestProgressOnATerminal(t *testing.T) {
	outer, inner := openTerminal(t, Size{Width: 30, Height: 4})
	t.Setenv("TERM", "xterm")
	c := &fakeClock{time.Unix(1000, 0)}
	p := NewProgress(inner, c.now)
	p.At("units", 0, 100) // too early to be shown
	c.at = c.at.Add(progressDelay)
	p.At("units", 50, 100)
	p.At("units", 100, 100)
	p.At("others", 1, 2)
	p.End()
	fmt.Fprint(inner, "END")
	if diff := cmp.Diff("\runits [#####      ] 50 of 100\x1b[K\r\x1b[K", readUntil(t, outer, "END")); diff != "" {
		t.Error(diff)
	}
}

func TestProgressElsewhere(t *testing.T) {
	var out bytes.Buffer
	c := &fakeClock{time.Unix(1000, 0)}
	p := NewProgress(&out, c.now)
	for done := range 11 {
		p.At("units", done*10, 100)
		c.at = c.at.Add(2 * time.Second)
	}
	p.At("units\x1b[31m", 0, 1)
	for range 11 { // the clock stands still
		c.at = c.at.Add(lineInterval)
		p.At("units\x1b[31m", 0, 1)
	}
	if diff := cmp.Diff("units: 30 of 100\nunits: 60 of 100\nunits: 90 of 100\nunits\\x1b[31m: 0 of 1\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestUntilUnread(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	ctx, stop := UntilUnread(t.Context(), write)
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("it is read")
	}
	read.Close()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("nobody noticed that the reader has gone")
	}
}

func TestUntilUnreadStops(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	for _, w := range []io.Writer{write, &bytes.Buffer{}} {
		ctx, stop := UntilUnread(t.Context(), w)
		if stop(); ctx.Err() == nil {
			t.Error("it goes on after stop")
		}
	}
}

func TestOrphanStopsWaiting(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	looks := 0
	awaitUnread(int(write.Fd()), int(write.Fd()), func() bool { looks++; return looks == 2 }) // otherwise the test would hang
}
