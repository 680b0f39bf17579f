package do

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"sync"

	"bijou/agent/hookctx"
	"bijou/agent/unitlog"
	"bijou/hookenv/hookapi"
	"bijou/state"
)

// auditedHook logs who makes the writes of a hook that take effect at once.
type auditedHook struct {
	*hookctx.Context
	run *run
}

// SetStatus sets the status, and logs it.
func (h auditedHook) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	if err := h.Context.SetStatus(ctx, ofService, s); err != nil {
		return err
	}
	what := "status"
	if ofService {
		what = "status of the service"
	}
	h.Log("INFO", fmt.Sprintf("%s set: %s %q, by %s", what, s.Status, s.Message, h.run.operator))
	return nil
}

func operatorName() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

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
