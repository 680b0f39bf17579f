package uniter

import (
	"strings"
	"testing"
)

func TestLastTelling(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":               {"", ""},
		"no letter":             {"}\n---\n", ""},
		"one line":              {"cannot start", "cannot start"},
		"a traceback":           {"Traceback:\n  File \"x\"\nKeyError: 'x'\n", "KeyError: 'x'"},
		"marks behind the last": {"ValueError: x\n    ^^^^\n}\n", "ValueError: x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastTelling(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}

	long := lastTelling("x" + strings.Repeat("y", 2*maxStderr))
	if len(long) > maxStderr || !strings.HasSuffix(long, " bytes cut off)") {
		t.Errorf("a long line is %q", long)
	}
}

func TestLastErrorIsOfErrorsOnly(t *testing.T) {
	var l lastError
	for _, said := range [][2]string{{"ERROR", "one"}, {"CRITICAL", "two"}, {"WARNING", "three"}, {"ERROR", "---"}, {"INFO", "four"}} {
		l.note(said[0], said[1])
	}
	if got := l.get(); got != "two" {
		t.Errorf("got %q", got)
	}
}
