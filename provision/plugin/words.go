package plugin

import (
	"log/slog"
	"strings"
	"sync"
)

// words is what an executable says on stderr: it goes to the log, and what it said
// last is kept for those who ask why it ended.
type words struct {
	*lines
	log *slog.Logger

	mu   sync.Mutex
	last string
}

func newWords(log *slog.Logger) *words {
	w := &words{log: log}
	w.lines = newLines(w.note)
	return w
}

// note logs a line. A panic's first line says more than the trace that follows.
func (w *words) note(line string) {
	line = strings.TrimSpace(text(line))
	if line == "" {
		return
	}
	if chatter(line) {
		w.log.Debug("provider says", "line", line)
		return
	}
	w.log.Info("provider says", "line", line)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.HasPrefix(w.last, "panic: ") && !strings.HasPrefix(w.last, "fatal error: ") {
		w.last = line
	}
}

// chatter tells if a line is one that go-plugin's servers log for themselves.
func chatter(line string) bool {
	return strings.HasPrefix(line, `{"@level":"debug"`) || strings.HasPrefix(line, `{"@level":"trace"`)
}

// most is how much of the last words stands in an error, in bytes.
const most = 300

// end is the last words as an error ends with them.
func (w *words) end() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == "" {
		return ""
	}
	return "; it said: " + text(w.last[:min(len(w.last), most)])
}
