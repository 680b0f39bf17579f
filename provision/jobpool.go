package provision

import (
	"context"
	"sync"
	"time"
)

const (
	maxRunningJobs = 8           // how many jobs run at a time
	slowJobTimeout = time.Minute // after which a job that goes on makes room for another one
)

// job is done for one machine.
type job struct {
	action Action
	run    func(ctx context.Context) error
}

// One job a machine runs at a time, or one for an instance of none.
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
	doneSinceDrain map[string]bool // whose job has ended since the last survey
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

func newJobPool() *jobPool {
	return &jobPool{busy: map[string]runningJob{}, doneSinceDrain: map[string]bool{}}
}

// What is planned next rests on what is read after drain, which returns how jobs have ended since
// the last one.
func (c *jobPool) drain() []outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.outcomes
	c.outcomes, c.doneSinceDrain = nil, map[string]bool{}
	return told
}

// schedule replaces the jobs that are still to begin. Those for a machine whose job is under way,
// or has ended since drain, are left out: the plan after its end decides anew.
func (c *jobPool) schedule(ctx context.Context, jobs []job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
	for _, j := range jobs {
		_, busy := c.busy[j.key()]
		if !busy && !c.doneSinceDrain[j.key()] {
			c.queue = append(c.queue, j)
		}
	}
	c.startQueued(ctx)
}

// It is called with the lock held.
func (c *jobPool) startQueued(ctx context.Context) {
	for i := 0; i < len(c.queue) && c.slotsTaken < maxRunningJobs; {
		j := c.queue[i]
		if _, busy := c.busy[j.key()]; busy { // another instance of its machine
			i++
			continue
		}
		c.queue = append(c.queue[:i], c.queue[i+1:]...)
		c.slotsTaken++
		c.startJob(ctx, j)
	}
}

// It is called with the lock held.
func (c *jobPool) startJob(ctx context.Context, j job) {
	own, cancel := context.WithCancel(ctx)
	c.busy[j.key()] = runningJob{j.action.Verb, cancel}
	leave := sync.OnceFunc(func() { c.releaseSlot(ctx) })
	slow := time.AfterFunc(slowJobTimeout, leave)
	c.tasks.Go(func() {
		defer cancel()
		err := j.run(own)
		slow.Stop()
		c.noteEnded(j, err)
		leave()
	})
}

func (c *jobPool) releaseSlot(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slotsTaken--
	if ctx.Err() == nil {
		c.startQueued(ctx)
	}
}

func (c *jobPool) noteEnded(j job, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, j.key())
	c.doneSinceDrain[j.key()] = true
	c.outcomes = append(c.outcomes, outcome{j.action, err})
	c.ended = true
	if c.notify != nil {
		c.notify()
	}
}

func (c *jobPool) cancelUnwantedStarts(wanted func(machine string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, w := range c.busy {
		if w.verb == Start && !wanted(key) {
			w.cancel()
		}
	}
}

// notify is called when a job ends, at once if one has since the last time, until it is released.
func (c *jobPool) onJobEnd(call context.CancelFunc) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		call()
	}
	c.ended, c.notify = false, call
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.notify = nil
	}
}

// The context that the jobs began with is done by then.
func (c *jobPool) wait() { c.tasks.Wait() }
