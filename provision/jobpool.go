package provision

import (
	"context"
	"sync"
	"time"
)

const (
	maxRunningJobs = 8
	slowJobTimeout = time.Minute // after which a job that goes on makes room for another one
)

// job is done for one machine.
type job struct {
	action Action
	run    func(ctx context.Context) error
}

// key returns a name for the job's machine, or for the instance if it has none. One job of a name runs at a
// time.
func (j job) key() string {
	if j.action.Machine == "" {
		return "instance " + j.action.Instance
	}
	return j.action.Machine
}

// jobPool runs jobs, several at a time but one a machine. A job that takes long gives its slot up,
// so that those that hang hold up nobody. Whoever makes a pool waits for it.
type jobPool struct {
	tasks sync.WaitGroup

	mu             sync.Mutex
	queue          []job // of the newest plan, those that have not begun
	slotsTaken     int   // how many jobs run that have not made room
	busy           map[string]runningJob
	doneSinceTaken map[string]bool // whose job has ended since takeOutcomes
	outcomes       []outcome
	ended          bool               // a job has ended since onJobEnd
	notify         context.CancelFunc // what onJobEnd asked for; may be nil
}

// runningJob is a job under way.
type runningJob struct {
	verb   Verb
	cancel context.CancelFunc
}

// outcome says how a job has ended.
type outcome struct {
	action Action
	err    error
}

// takeOutcomes returns the outcomes of jobs that have ended since the last call. The caller must read the
// state after it, so that the next plan knows these outcomes.
func (p *jobPool) takeOutcomes() []outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	outcomes := p.outcomes
	p.outcomes = nil
	p.doneSinceTaken = map[string]bool{}
	return outcomes
}

// schedule replaces the jobs that have not begun. It leaves out jobs for a machine that has a running job,
// or one that has ended since takeOutcomes: the next plan decides about that machine.
func (p *jobPool) schedule(ctx context.Context, jobs []job) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.queue = nil
	for _, j := range jobs {
		_, busy := p.busy[j.key()]
		if !busy && !p.doneSinceTaken[j.key()] {
			p.queue = append(p.queue, j)
		}
	}
	p.startQueued(ctx)
}

// startQueued starts queued jobs while there are free slots. The caller holds the lock.
func (p *jobPool) startQueued(ctx context.Context) {
	for i := 0; i < len(p.queue) && p.slotsTaken < maxRunningJobs; {
		j := p.queue[i]
		if _, busy := p.busy[j.key()]; busy { // another instance of its machine
			i++
			continue
		}

		p.queue = append(p.queue[:i], p.queue[i+1:]...)
		p.slotsTaken++
		p.startJob(ctx, j)
	}
}

// startJob starts a job in a goroutine. The caller holds the lock.
func (p *jobPool) startJob(ctx context.Context, j job) {
	jobCtx, cancel := context.WithCancel(ctx)
	p.busy[j.key()] = runningJob{j.action.Verb, cancel}

	// A slow job gives its slot to the next one, and goes on.
	release := sync.OnceFunc(func() { p.releaseSlot(ctx) })
	slowTimer := time.AfterFunc(slowJobTimeout, release)

	p.tasks.Go(func() {
		defer cancel()
		err := j.run(jobCtx)
		slowTimer.Stop()
		p.noteEnded(j, err)
		release()
	})
}

// releaseSlot frees one slot, and starts the next queued job in it.
func (p *jobPool) releaseSlot(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slotsTaken--
	if ctx.Err() == nil {
		p.startQueued(ctx)
	}
}

// noteEnded records a job's outcome, and wakes the leader.
func (p *jobPool) noteEnded(j job, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.busy, j.key())
	p.doneSinceTaken[j.key()] = true
	p.outcomes = append(p.outcomes, outcome{j.action, err})
	p.ended = true
	if p.notify != nil {
		p.notify()
	}
}

// cancelUnwantedStarts cancels the starts of machines that are no longer wanted.
func (p *jobPool) cancelUnwantedStarts(wanted func(machine string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for key, w := range p.busy {
		if w.verb == Start && !wanted(key) {
			w.cancel()
		}
	}
}

// onJobEnd calls the function when a job ends, until it is released. It calls it at once if a job has ended
// since the last time.
func (p *jobPool) onJobEnd(call context.CancelFunc) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.ended {
		call()
	}
	p.ended = false
	p.notify = call
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notify = nil
	}
}

// wait waits for all jobs. The context with which they began must be done.
func (p *jobPool) wait() { p.tasks.Wait() }
