package do

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"bijou/agent/unitlog"
	"bijou/state"
)

// journal is where the lines go: into the environment's log of the unit (or
// service) that they are about. The file on a unit's machine is its agent's own.
type journal struct {
	state *state.State
	err   io.Writer // gets what is about no unit

	mu   sync.Mutex
	logs map[string]*unitlog.Log
}

func newJournal(st *state.State, err io.Writer) *journal {
	return &journal{state: st, err: err, logs: map[string]*unitlog.Log{}}
}

// write adds a line to the log of that source; empty is none.
func (j *journal) write(source, level, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if source == "" {
		fmt.Fprintf(j.err, "%s %s\n", level, message)
		return
	}
	log := j.logs[source]
	if log == nil {
		log = unitlog.Open(unitlog.Options{Unit: source, State: j.state, Log: slog.Default()})
		j.logs[source] = log
	}
	log.Write(level, hookName, message)
}

// close sends what is left.
func (j *journal) close() {
	var sending sync.WaitGroup
	for _, log := range j.logs {
		sending.Go(log.Close)
	}
	sending.Wait()
}
