package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bijou/agent/pace"
	"bijou/state"
	"bijou/state/charm"
)

// leaders sees to it that each service of which this process runs units has a
// leader: one campaign a service, however many units there are. Which of them
// leads is for the one that wins to say.
type leaders struct {
	presence *presence
	state    *state.State
	log      *slog.Logger

	mu       sync.Mutex
	services map[string]*candidates
	wg       sync.WaitGroup
}

// candidates are the units of one service that this process runs: true for those
// that are there to stay.
type candidates struct {
	units   map[string]bool
	changed chan struct{} // buffered: one wake is as good as many
}

// recheck is how often a leader that goes looks for an heir in other processes.
const recheck = 3 * time.Second

func newLeaders(p *presence, st *state.State, log *slog.Logger) *leaders {
	return &leaders{presence: p, state: st, log: log, services: map[string]*candidates{}}
}

// stand makes a unit a candidate for the leadership of its service, or if it is
// not there to stay, one that only leads as long as nobody else can. ctx ends
// the campaign, without a word to the store: leaderships end with the session.
func (l *leaders) stand(ctx context.Context, unit string, stays bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	service, _, err := charm.ParseUnit(unit)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	c := l.services[service]
	if c == nil {
		c = &candidates{units: map[string]bool{}, changed: make(chan struct{}, 1)}
		l.services[service] = c
		l.wg.Go(func() { l.run(ctx, service, c) })
	}
	if was, known := c.units[unit]; !known || was != stays {
		c.units[unit] = stays
		c.wake()
	}
}

// retire takes a unit out: its agent has ended.
func (l *leaders) retire(unit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	service, _, _ := charm.ParseUnit(unit)
	if c := l.services[service]; c != nil {
		delete(c.units, unit)
		c.wake()
	}
}

// wait waits for all campaigns, whose units have ended or whose ctx is done.
func (l *leaders) wait() { l.wg.Wait() }

func (c *candidates) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// pick is the unit that is to lead: the one that does, while it stays, else the
// first that does; empty if none stays. there says if leader is one at all.
func (l *leaders) pick(c *candidates, leader string) (next string, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stays, there := c.units[leader]
	if stays {
		return leader, there
	}
	var names []string
	for unit, stays := range c.units {
		if stays {
			names = append(names, unit)
		}
	}
	if len(names) == 0 {
		return "", there
	}
	return slices.MinFunc(names, charm.CompareUnits), there
}

// here says if this process runs a unit.
func (l *leaders) here(c *candidates, unit string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, here := c.units[unit]
	return here
}

// over forgets a service whose units have all ended, and says if it did.
func (l *leaders) over(service string, c *candidates) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(c.units) > 0 {
		return false
	}
	delete(l.services, service)
	return true
}

// run campaigns for one service as long as there is somebody to lead it.
func (l *leaders) run(ctx context.Context, service string, c *candidates) {
	var again pace.Pacer
	for ctx.Err() == nil && !l.over(service, c) {
		unit, _ := l.pick(c, "")
		if unit == "" {
			c.await(ctx, nil, 0)
			continue
		}
		lead, err := l.campaign(ctx, service, unit, c)
		if err == nil && lead != nil {
			l.log.Info("unit leads its service", "service", service, "unit", unit)
			err = l.hold(ctx, lead, service, unit, c)
		}
		if err != nil && ctx.Err() == nil {
			l.log.Debug("leadership ended", "service", service, "error", err)
			_ = again.Pause(ctx)
			continue
		}
		again.Reset()
	}
}

// await waits until the candidates have changed, done is closed, or after a time
// (unless it is zero).
func (c *candidates) await(ctx context.Context, done <-chan struct{}, most time.Duration) {
	var timeout <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-c.changed:
	case <-done:
	case <-timeout:
	case <-ctx.Done():
	}
}

// won is how a campaign has ended.
type won struct {
	lead *state.Leadership
	err  error
}

// campaign waits for the leadership; nil if meanwhile nobody here can lead.
func (l *leaders) campaign(ctx context.Context, service, unit string, c *candidates) (*state.Leadership, error) {
	session, err := l.presence.process.Standing(ctx)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan won, 1)
	l.wg.Go(func() {
		lead, err := session.CampaignFor(running, service, unit)
		result <- won{lead, err}
	})
	for {
		select {
		case w := <-result:
			return w.lead, w.err
		case <-c.changed:
		}
		if next, _ := l.pick(c, unit); next != "" {
			continue
		}
		cancel()
		w := <-result
		if w.lead == nil {
			return nil, nil // told to give up
		}
		return w.lead, w.err
	}
}

// hold leads until the leadership is lost or there is nobody here to go on.
func (l *leaders) hold(ctx context.Context, lead *state.Leadership, service, leader string, c *candidates) error {
	for ctx.Err() == nil && !leadEnded(lead) {
		next, there := l.pick(c, leader)
		switch {
		case next == leader:
			c.await(ctx, lead.Done(), 0)
		case next != "":
			if err := lead.Elect(ctx, next); err != nil {
				return errors.Join(err, l.resign(ctx, lead))
			}
			l.log.Info("unit leads its service", "service", service, "unit", next)
			leader = next
		case there && !l.heirs(ctx, service, c):
			c.await(ctx, lead.Done(), recheck)
		default:
			return l.resign(ctx, lead)
		}
	}
	return nil
}

func leadEnded(lead *state.Leadership) bool {
	select {
	case <-lead.Done():
		return true
	default:
		return false
	}
}

// heirs says if another process has a unit that could lead; not knowing counts as no.
func (l *leaders) heirs(ctx context.Context, service string, c *candidates) (some bool) {
	_ = l.state.View(ctx, func(v *state.View) error {
		units, err := v.Units(service)
		for _, u := range units {
			if err != nil || some || u.Life != state.Alive || l.here(c, u.Name) {
				continue
			}
			some, err = v.Present(state.UnitAgent(u.Name))
		}
		return err
	})
	return some
}

// resign hands the leadership to whoever campaigns.
func (l *leaders) resign(ctx context.Context, lead *state.Leadership) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return lead.Resign(ctx)
}
