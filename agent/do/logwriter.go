package do

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"bijou/agent/unitlog"
	"bijou/state"
)

// logWriter writes lines into the environment's log of the unit (or service) that they are
// about. Only a unit's own agent writes the file on its machine.
type logWriter struct {
	state  *state.State
	stderr io.Writer // gets what is about no unit

	mu   sync.Mutex
	logs map[string]*unitlog.Log
}

func newLogWriter(st *state.State, stderr io.Writer) *logWriter {
	return &logWriter{state: st, stderr: stderr, logs: map[string]*unitlog.Log{}}
}

func (w *logWriter) write(source, level, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if source == "" {
		fmt.Fprintf(w.stderr, "%s %s\n", level, message)
		return
	}
	log := w.logs[source]
	if log == nil {
		log = unitlog.Open(unitlog.Options{Unit: source, State: w.state, Log: slog.Default()})
		w.logs[source] = log
	}
	log.Write(level, hookName, message)
}

func (w *logWriter) close() {
	var sending sync.WaitGroup
	for _, log := range w.logs {
		sending.Go(log.Close)
	}
	sending.Wait()
}
