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

// play is a running history: workers that write to one store, and their reports.
type play struct {
	url   string
	plant string

	mu       sync.Mutex
	history  []porcupine.Operation
	sessions []session
	workers  int
	complain []string // the workers' stderr
}

// session is a worker's session. It ends after its worker. It ends earlier only if the worker was told:
// otherwise its end would take slots from a living process.
type session struct {
	id   string
	ends int64 // the earliest time of its end
}

// start starts a worker as a process that plays for the duration work. Its history is complete once the
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
		// Wait usually returns an error, since the worker is killed.
		_ = cmd.Wait()

		if len(said) > 0 {
			p.mu.Lock()
			p.complain = append(p.complain, id+": "+string(said))
			p.mu.Unlock()
		}
	}()
	return cmd, done, nil
}

// record reads a worker's reports until the worker ends. An operation that has not ended by then has no
// outcome.
func (p *play) record(client int, id string, from io.Reader) {
	var open *porcupine.Operation
	own := session{id: id}
	var begun int64

	for lines := bufio.NewScanner(from); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			// The last line of a killed worker can be incomplete.
			continue
		}
		own.ends = e.At

		switch {
		case e.Session != "":
			begun = e.At
		case e.Lost:
			own.ends = begun // the session ended some time before the worker noticed
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

// add adds a completed operation. If there is no outcome, it drops a read, since the read proves nothing. Any
// other operation without an outcome may still happen at any later time.
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

// finish adds the end of each session. Each session has ended before now, since all slots are free.
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
