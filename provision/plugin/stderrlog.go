package plugin

import (
	"log/slog"
	"strings"
	"sync"
)

// stderrLog is what an executable says on stderr: it goes to the log, and what it said
// last is kept for those who ask why it ended.
type stderrLog struct {
	*lineWriter
	log *slog.Logger

	mu   sync.Mutex
	last string
}

func newStderrLog(log *slog.Logger) *stderrLog {
	w := &stderrLog{log: log}
	w.lineWriter = newLineWriter(w.logLine)
	return w
}

// logLine logs a line. A panic's first line says more than the trace that follows.
func (w *stderrLog) logLine(line string) {
	line = strings.TrimSpace(toUTF8(line))
	if line == "" {
		return
	}
	if isGoPluginLog(line) {
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

// isGoPluginLog tells if a line is one that go-plugin's servers log for themselves.
func isGoPluginLog(line string) bool {
	return strings.HasPrefix(line, `{"@level":"debug"`) || strings.HasPrefix(line, `{"@level":"trace"`)
}

// maxLastOutput is how much of the last words stands in an error, in bytes.
const maxLastOutput = 300

// errorSuffix is the last words as an error ends with them.
func (w *stderrLog) errorSuffix() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == "" {
		return ""
	}
	return "; it said: " + toUTF8(w.last[:min(len(w.last), maxLastOutput)])
}
