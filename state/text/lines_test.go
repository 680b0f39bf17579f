package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriter checks that lines are emitted without their line ends, that long lines are split, that Close
// emits the last line, and that no line is emitted after Close.
func TestWriter(t *testing.T) {
	var got []string
	w := &LineWriter{Max: 8, Emit: func(line string) { got = append(got, line) }}
	for _, text := range []string{"on", "e\r\ntwo\n\n", "0123456789\n", "last"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: got %d, %v", text, n, err)
		}
	}
	w.Close()
	_, _ = w.Write([]byte("late\n"))
	w.Close()
	if diff := cmp.Diff([]string{"one", "two", "", "01234567", "89", "last"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLongLinesKeepCharactersWhole(t *testing.T) {
	const maxLine = 64 << 10
	var got []string
	w := &LineWriter{Max: maxLine, Emit: func(line string) { got = append(got, line) }}
	text := "x" + strings.Repeat("é", maxLine)
	for chunk := range slices.Chunk([]byte(text), 1000) {
		_, _ = w.Write(chunk)
	}
	w.Close()
	if strings.Join(got, "") != text || slices.ContainsFunc(got, func(line string) bool { return EscapeInvalid(line) != line }) {
		t.Errorf("text was changed on its way, into %d lines", len(got))
	}
}

func TestEscapeInvalid(t *testing.T) {
	for text, want := range map[string]string{"": "", "é\ufffd\x00": "é\ufffd\x00", "a\xffb\xc3": `a\xffb\xc3`} {
		t.Run(text, func(t *testing.T) {
			if got := EscapeInvalid(text); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
