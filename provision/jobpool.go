package provision

import (
	"context"
	"sync"
	"time"
)

const (
	maxRunningJobs = 8
	// slowJobTimeout is the time after which a running job gives its slot to another one.
	slowJobTimeout = time.Minute
)

// job is an action to run for one machine.
type job struct {
	action Action
	run    func(ctx context.Context) error
}

// key returns a name for the job's machine, or for its instance if the job has no machine. The pool runs only
// one job for each key at a time.
func (j job) key() string {
	if j.action.Machine == "" {
		return "instance " + j.action.Instance
	}
	return j.action.Machine
}

// jobPool runs several jobs at a time, but only one for each machine. A slow job gives up its slot, so that
// hanging jobs do not block others. The owner of the pool must call wait.
type jobPool struct {
	tasks sync.WaitGroup

	mu             sync.Mutex
	queue          []job                 // the jobs in the newest plan that have not begun
	slotsTaken     int                   // the number of running jobs that have not given up their slots
	busy           map[string]runningJob // by key
	doneSinceTaken map[string]bool       // the keys of jobs that have ended since takeOutcomes
	outcomes       []outcome
	ended          bool               // a job has ended since the last call of onJobEnd
	notify         context.CancelFunc // the function that was given to onJobEnd; can be nil
}

// runningJob is a job that is running.
type runningJob struct {
	verb   Verb
	cancel context.CancelFunc
}

// outcome is the result of a job.
type outcome struct {
	action Action
	err    error
}

// takeOutcomes returns the outcomes of jobs that have ended since the last call. The caller must read the
// state after this call, so that the next plan includes the results.
func (p *jobPool) takeOutcomes() []outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	outcomes := p.outcomes
	p.outcomes = nil
	// With this map, schedule leaves out the machines of jobs that have ended since this call.
	p.doneSinceTaken = map[string]bool{}
	return outcomes
}

// schedule replaces the jobs that have not begun, and starts jobs in the free slots. It leaves out jobs for a
// machine with a running job, or with a job that has ended since the last call of takeOutcomes. The next plan
// decides about the machines that are left out.
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
		// A plan may have several jobs for one machine.
		if _, busy := p.busy[j.key()]; busy {
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

	// A job gives up its slot once: when it has become slow, or otherwise when it has ended.
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

// releaseSlot frees one slot. Unless ctx is done, it then starts queued jobs in the free slots.
func (p *jobPool) releaseSlot(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slotsTaken--
	if ctx.Err() == nil {
		p.startQueued(ctx)
	}
}

// noteEnded records that a job has ended, and its outcome. If the leader is waiting, it wakes the leader.
func (p *jobPool) noteEnded(j job, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.busy, j.key())
	p.doneSinceTaken[j.key()] = true
	p.outcomes = append(p.outcomes, outcome{j.action, err})
	p.ended = true // for onJobEnd, if the leader is not waiting yet
	if p.notify != nil {
		p.notify()
	}
}

// cancelUnwantedStarts cancels the starts of machines for which wanted returns false.
func (p *jobPool) cancelUnwantedStarts(wanted func(machine string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for key, running := range p.busy {
		// The key of a start is its machine.
		if running.verb == Start && !wanted(key) {
			running.cancel()
		}
	}
}

// onJobEnd makes the pool call the function whenever a job ends, until release is called. If a job has
// already ended since the last call of onJobEnd, it calls the function at once.
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

// wait waits for all jobs. The context with which they were started must be done.
func (p *jobPool) wait() { p.tasks.Wait() }
