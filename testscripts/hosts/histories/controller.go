package histories

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// program is the name under which a test binary is a worker.
const program = "histories-worker"

// play is one history in the making: workers that write to one store, and what they told.
type play struct {
	url   string
	plant string

	mu       sync.Mutex
	history  []porcupine.Operation
	sessions []session
	workers  int
	complain []string // what workers wrote to stderr
}

// session is a worker's. It ends after the worker has, or sooner if the worker was told so: an end
// before that would take slots from a process that lives.
type session struct {
	id   string
	ends int64 // not before
}

// start runs a worker as a process, which plays for that long. Its history is complete once the
// returned channel is closed.
func (p *play) start(seed uint64, work time.Duration) (*exec.Cmd, <-chan struct{}, error) {
	p.mu.Lock()
	p.workers++
	client, id := p.workers, fmt.Sprintf("worker-%d", p.workers)
	p.mu.Unlock()

	executable, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(executable)
	cmd.Args = []string{program, p.url, id, strconv.FormatUint(seed, 10), strconv.FormatInt(work.Milliseconds(), 10), p.plant}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		p.record(client, id, out)
		said, _ := io.ReadAll(errs)
		_ = cmd.Wait() // killed, mostly

		if len(said) > 0 {
			p.mu.Lock()
			p.complain = append(p.complain, id+": "+string(said))
			p.mu.Unlock()
		}
	}()
	return cmd, done, nil
}

// record reads what a worker tells until it ends. What it had begun by then has no outcome.
func (p *play) record(client int, id string, from io.Reader) {
	var open *porcupine.Operation
	own := session{id: id}
	var begun int64

	for lines := bufio.NewScanner(from); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line of a killed worker
		}
		own.ends = e.At

		switch {
		case e.Session != "":
			begun = e.At
		case e.Lost:
			own.ends = begun // at some time before the worker noticed
		case e.Operation != nil:
			open = &porcupine.Operation{ClientId: client, Input: *e.Operation, Call: e.At}
		case e.Outcome != nil && open != nil:
			p.add(*open, *e.Outcome, e.At)
			open = nil
		}
	}

	p.mu.Lock()
	p.sessions = append(p.sessions, own)
	p.mu.Unlock()
	if open != nil {
		p.add(*open, outcome{}, math.MaxInt64)
	}
}

// add completes an operation. One that was not told its outcome tells nothing if it only read, and
// else may still happen at any later time.
func (p *play) add(op porcupine.Operation, told outcome, at int64) {
	kind := op.Input.(operation).Kind
	if !told.Known {
		if kind == opView {
			return
		}
		at = math.MaxInt64
	}
	op.Output = told
	op.Return = at

	p.mu.Lock()
	defer p.mu.Unlock()
	p.history = append(p.history, op)
}

// finish adds the end of each session, which came before now, when nobody holds a slot any more.
func (p *play) finish(at int64) []porcupine.Operation {
	p.mu.Lock()
	defer p.mu.Unlock()

	for i, s := range p.sessions {
		p.history = append(p.history, porcupine.Operation{
			ClientId: p.workers + 1 + i, Input: operation{Kind: opEnd, Session: s.id}, Output: outcome{Known: true}, Call: s.ends, Return: at,
		})
	}
	return p.history
}
