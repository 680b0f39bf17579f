package provision

import (
	"context"
	"sync"
	"time"
)

// parallel is how many jobs run at a time.
const parallel = 8

// crew runs jobs, several at a time but one a machine, so that a slow machine
// holds up no other. Whoever makes one waits for it.
type crew struct {
	tasks sync.WaitGroup
	seats chan struct{} // one slot a job that may run at the same time

	mu       sync.Mutex
	busy     map[string]bool
	done     map[string]bool // whose job has ended since the last survey
	outcomes []outcome
	ended    bool               // a job has ended since whenDone
	call     context.CancelFunc // what whenDone asked for; may be nil
}

func newCrew() *crew {
	return &crew{seats: make(chan struct{}, parallel), busy: map[string]bool{}, done: map[string]bool{}}
}

// survey says that what is planned next rests on what is read from now on. It
// returns how starts have ended since the last one.
func (c *crew) survey() []outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.outcomes
	c.outcomes, c.done = nil, map[string]bool{}
	return told
}

// begin runs the job, unless one for that machine is under way or has ended
// since the survey: the plan after its end decides anew. After a job that failed the machine is left alone for a
// moment.
func (c *crew) begin(ctx context.Context, machine string, job func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[machine] || c.done[machine] {
		return
	}
	c.busy[machine] = true
	c.tasks.Go(func() {
		defer c.end(machine)
		c.seats <- struct{}{}
		err := job(ctx)
		<-c.seats
		if err != nil {
			pause(ctx, firstRetry)
		}
	})
}

func (c *crew) end(machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, machine)
	c.done[machine] = true
	c.ended = true
	if c.call != nil {
		c.call()
	}
}

// pause waits, unless ctx ends it.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
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

// tell notes how a start has ended.
func (c *crew) tell(o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes = append(c.outcomes, o)
}

// wait returns when all jobs have ended.
func (c *crew) wait() { c.tasks.Wait() }
