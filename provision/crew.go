package provision

import (
	"context"
	"sync"
	"time"
)

const (
	parallel = 8           // how many jobs run at a time
	patience = time.Minute // after which a job that goes on makes room for another one
)

// job is what is done for one machine.
type job struct {
	action Action
	run    func(ctx context.Context) error
}

// key is whom the job is for: one job a machine, or an instance of none.
func (j job) key() string {
	if j.action.Machine == "" {
		return "instance " + j.action.Instance
	}
	return j.action.Machine
}

// crew runs jobs, several at a time but one a machine. A job that takes long
// makes room for another, so that those that hang hold up nobody. Whoever makes a
// crew waits for it.
type crew struct {
	tasks sync.WaitGroup

	mu       sync.Mutex
	queue    []job // of the newest plan, those that have not begun
	taken    int   // how many jobs run that have not made room
	busy     map[string]working
	done     map[string]bool // whose job has ended since the last survey
	outcomes []outcome
	ended    bool               // a job has ended since whenDone
	call     context.CancelFunc // what whenDone asked for; may be nil
}

// working is a job under way.
type working struct {
	verb   Verb
	cancel context.CancelFunc
}

// outcome is how a job has ended.
type outcome struct {
	action Action
	err    error
}

func newCrew() *crew {
	return &crew{busy: map[string]working{}, done: map[string]bool{}}
}

// survey says that what is planned next rests on what is read from now on. It
// returns how jobs have ended since the last one.
func (c *crew) survey() []outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.outcomes
	c.outcomes, c.done = nil, map[string]bool{}
	return told
}

// offer replaces the jobs that are still to begin. Those for a machine whose job
// is under way, or has ended since the survey, are left out: the plan after its
// end decides anew.
func (c *crew) offer(ctx context.Context, jobs []job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
	for _, j := range jobs {
		_, busy := c.busy[j.key()]
		if !busy && !c.done[j.key()] {
			c.queue = append(c.queue, j)
		}
	}
	c.fill(ctx)
}

// fill begins jobs while there is room. It is called with the lock held.
func (c *crew) fill(ctx context.Context) {
	for i := 0; i < len(c.queue) && c.taken < parallel; {
		j := c.queue[i]
		if _, busy := c.busy[j.key()]; busy { // another instance of its machine
			i++
			continue
		}
		c.queue = append(c.queue[:i], c.queue[i+1:]...)
		c.taken++
		c.begin(ctx, j)
	}
}

// begin runs a job that has room. It is called with the lock held.
func (c *crew) begin(ctx context.Context, j job) {
	own, cancel := context.WithCancel(ctx)
	c.busy[j.key()] = working{j.action.Verb, cancel}
	leave := sync.OnceFunc(func() { c.leave(ctx) })
	slow := time.AfterFunc(patience, leave)
	c.tasks.Go(func() {
		defer cancel()
		err := j.run(own)
		slow.Stop()
		c.end(j, err)
		leave()
	})
}

// leave makes a job's room another's.
func (c *crew) leave(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken--
	if ctx.Err() == nil {
		c.fill(ctx)
	}
}

func (c *crew) end(j job, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, j.key())
	c.done[j.key()] = true
	c.outcomes = append(c.outcomes, outcome{j.action, err})
	c.ended = true
	if c.call != nil {
		c.call()
	}
}

// abandon ends the starts of machines that nobody wants any more.
func (c *crew) abandon(wanted func(machine string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, w := range c.busy {
		if w.verb == Start && !wanted(key) {
			w.cancel()
		}
	}
}

// whenDone has call called when a job ends, at once if one has since the last
// time, until it is released.
func (c *crew) whenDone(call context.CancelFunc) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		call()
	}
	c.ended, c.call = false, call
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.call = nil
	}
}

// wait returns when all jobs have ended; the context that they began with is done.
func (c *crew) wait() { c.tasks.Wait() }
