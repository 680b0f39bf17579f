package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TestTerminal checks that programs can ask for a secret in every usual way. The test binary acts as these
// programs.
func TestTerminal(t *testing.T) {
	if way := os.Getenv("BIJOU_TEST_ASK"); way != "" {
		askFor(way)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := filepath.Join(t.TempDir(), "got")
	t.Setenv("BIJOU_TEST_GOT", got)
	line := "a key \x03\x15\x7f\x16\x11=" // contains characters that a normal terminal would interpret
	for _, way := range []string{"password", "raw", "flush", "pipe", "none"} {
		t.Setenv("BIJOU_TEST_ASK", way)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := runWithLine(ctx, []string{self, "-test.run=^TestTerminal$"}, []byte(line))
		cancel()
		want := line
		if way == "none" {
			want = ""
		}
		if data, _ := os.ReadFile(got); err != nil || string(data) != want {
			t.Errorf("%s: got %q, %v", way, data, err)
		}
	}
	if err := runWithLine(t.Context(), []string{"true"}, make([]byte, maxLine+1)); err == nil {
		t.Error("a line that no terminal takes was fed")
	}
}

// askFor reads a line in the given way, writes it to a file, and exits.
func askFor(way string) {
	line, err := "", error(nil)
	switch way {
	case "password": // as most Go programs read
		var data []byte
		data, err = term.ReadPassword(0)
		line = string(data)
	case "raw": // as Vault's command reads
		if !term.IsTerminal(0) {
			os.Exit(1)
		}
		var old *term.State
		if old, err = term.MakeRaw(0); err == nil {
			line, err = bufio.NewReaderSize(os.Stdin, 16).ReadString('\n')
			_ = term.Restore(0, old)
		}
	case "flush": // as getpass(3) reads
		var mode *unix.Termios
		if mode, err = unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
			mode.Lflag &^= unix.ECHO
			err = unix.IoctlSetTermios(0, unix.TCSETSF, mode)
			line, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
	case "pipe": // reads to the end of input
		in := bufio.NewReader(os.Stdin)
		line, _ = in.ReadString('\n')
		_, err = in.ReadByte()
		if err == nil {
			err = fmt.Errorf("there is more")
		} else {
			err = nil
		}
	}
	for len(line) > 0 && line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	if err != nil || os.WriteFile(os.Getenv("BIJOU_TEST_GOT"), []byte(line), 0o600) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
