package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/charm"
)

// leaderElection campaigns for the leadership of each service that has units in this process. It runs one
// campaign for each service, regardless of the number of units. If it wins a campaign, it chooses the unit that
// leads the service.
type leaderElection struct {
	presence *presence
	state    *state.State
	log      *slog.Logger

	mu       sync.Mutex
	services map[string]*candidates // by service
	wg       sync.WaitGroup
}

// candidates are the units of one service that this process runs. The election's mutex protects units.
type candidates struct {
	units   map[string]bool // true for a unit that stays, false for one that is being removed
	changed chan struct{}   // buffered: one pending wake-up is enough
}

// recheckInterval is how often a leader that is being removed looks for candidates in other processes.
const recheckInterval = 3 * time.Second

// newLeaderElection returns an election without candidates, which campaigns in the session of p.
func newLeaderElection(p *presence, st *state.State, log *slog.Logger) *leaderElection {
	return &leaderElection{presence: p, state: st, log: log, services: map[string]*candidates{}}
}

// nominate makes a unit a candidate for the leadership of its service. stays is false for a unit that is
// being removed. Such a unit leads only until another unit can take over. The campaigns of a service use the ctx
// of its first candidate. When that ctx is done, they end without a write, since leaderships end with the
// session.
func (e *leaderElection) nominate(ctx context.Context, unit string, stays bool) {
	e.mu.Lock()
	defer e.mu.Unlock()

	service, _, err := charm.ParseUnit(unit)
	if err != nil {
		panic("internal error: " + err.Error())
	}

	c := e.services[service]
	if c == nil {
		c = &candidates{units: map[string]bool{}, changed: make(chan struct{}, 1)}
		e.services[service] = c
		e.wg.Go(func() { e.runCampaigns(ctx, service, c) })
	}

	if stayed, known := c.units[unit]; known && stayed == stays {
		return
	}
	c.units[unit] = stays
	c.notify()
}

// withdraw removes a unit from the election in its service.
func (e *leaderElection) withdraw(unit string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The name is valid: the agent runs the unit.
	service, _, _ := charm.ParseUnit(unit)
	if c := e.services[service]; c != nil {
		delete(c.units, unit)
		c.notify()
	}
}

// wait waits until all campaigns have ended. They end when nominate's ctx is done or no candidate is left.
func (e *leaderElection) wait() { e.wg.Wait() }

// notify wakes the campaign of the candidates. It never blocks.
func (c *candidates) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// pickLeader returns the unit that should lead next. This is the current leader if it stays, and otherwise the
// first candidate that stays, in the order of unit numbers. If no candidate stays, next is empty. known reports
// whether the current leader is still a candidate.
func (e *leaderElection) pickLeader(c *candidates, leader string) (next string, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()

	leaderStays, known := c.units[leader]
	if leaderStays {
		return leader, known
	}

	var staying []string
	for unit, stays := range c.units {
		if stays {
			staying = append(staying, unit)
		}
	}
	if len(staying) == 0 {
		return "", known
	}

	return slices.MinFunc(staying, charm.CompareUnits), known
}

// removeIfEmpty removes a service whose last candidate has withdrawn. It reports whether it removed the
// service.
func (e *leaderElection) removeIfEmpty(service string, c *candidates) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(c.units) > 0 {
		return false
	}

	delete(e.services, service)
	return true
}

// runCampaigns campaigns for a service with one of its candidates at a time. When it wins, it holds the
// leadership until the leadership ends, and then campaigns again. It returns when ctx is done or no candidate is
// left.
func (e *leaderElection) runCampaigns(ctx context.Context, service string, c *candidates) {
	var retry backoff.Exponential

	for ctx.Err() == nil && !e.removeIfEmpty(service, c) {
		const noLeader = ""
		unit, _ := e.pickLeader(c, noLeader)
		if unit == "" { // all candidates are being removed
			c.waitForChange(ctx, nil, 0) // without a leadership that could end, and without a timeout
			continue
		}

		err := e.campaignAndLead(ctx, service, unit, c)
		if err == nil || ctx.Err() != nil { // the error of a done ctx is not a failure
			retry.Reset()
			continue
		}

		e.log.Debug("leadership ended", "service", service, "error", err)
		_ = retry.Wait(ctx) // if ctx is done, the loop ends
	}
}

// campaignAndLead campaigns with the unit. If it wins, it holds the leadership until the leadership ends or ctx is
// done. If the unit no longer stays, and the campaign was cancelled before it was won, it returns nil. Once it has
// led, it returns only an error of passing the leadership on or of resigning it.
func (e *leaderElection) campaignAndLead(ctx context.Context, service, unit string, c *candidates) error {
	lead, err := e.campaign(ctx, service, unit, c)
	if err != nil {
		return err
	}
	if lead == nil {
		return nil // the unit no longer stays, so the campaign was cancelled
	}

	e.log.Info("unit leads its application", "service", service, "unit", unit)
	return e.holdLeadership(ctx, lead, service, unit, c)
}

// waitForChange waits until the candidates change, done is closed, the timeout has passed, or ctx ends. A
// timeout of 0 never passes.
func (c *candidates) waitForChange(ctx context.Context, done <-chan struct{}, timeout time.Duration) {
	var expired <-chan time.Time
	if timeout > 0 {
		expired = time.After(timeout)
	}

	select {
	case <-c.changed:
	case <-done:
	case <-expired:
	case <-ctx.Done():
	}
}

// campaignResult is the result of state.CampaignFor.
type campaignResult struct {
	lead *state.Leadership
	err  error
}

// campaign blocks until the unit leads its service. If the unit no longer stays, campaign cancels the campaign,
// since the unit may be gone before the campaign is won. It then returns nil without an error, unless the
// campaign was won in the meantime.
func (e *leaderElection) campaign(ctx context.Context, service, unit string, c *candidates) (*state.Leadership, error) {
	session, err := e.presence.process.AnnouncedSession(ctx)
	if err != nil {
		return nil, err
	}

	campaigning, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan campaignResult, 1) // buffered, so that the goroutine never blocks
	e.wg.Go(func() {
		lead, err := state.CampaignFor(campaigning, session, service, unit)
		result <- campaignResult{lead, err}
	})

	// The end of ctx also ends the goroutine, so the loop does not wait for ctx itself.
	for {
		select {
		case r := <-result:
			return r.lead, r.err
		case <-c.changed:
		}

		// The campaign continues as long as the unit stays.
		if next, _ := e.pickLeader(c, unit); next == unit {
			continue
		}

		cancel()
		r := <-result
		if r.lead == nil {
			return nil, nil // the campaign was cancelled or has failed, and the unit no longer stays
		}

		return r.lead, r.err
	}
}

// holdLeadership holds the leadership of a service until it is lost or resigned, or ctx is done. If the leading
// unit is being removed or has withdrawn, it passes the leadership to a candidate that stays. If that fails, it
// resigns and returns the error. If no candidate stays, it resigns once another process has a unit that could
// lead, or once the leading unit has withdrawn.
func (e *leaderElection) holdLeadership(
	ctx context.Context,
	lead *state.Leadership,
	service, leader string,
	c *candidates,
) error {
	for ctx.Err() == nil && !lead.HasEnded() {
		next, known := e.pickLeader(c, leader)
		if next == leader {
			c.waitForChange(ctx, lead.Done(), 0)
			continue
		}

		if next != "" {
			if err := state.SetLeaderUnit(ctx, lead, next); err != nil {
				resignErr := e.resign(ctx, lead)
				return errors.Join(err, resignErr)
			}
			e.log.Info("unit leads its application", "service", service, "unit", next)
			leader = next
			continue
		}

		// No candidate of this process stays.
		if !known || e.hasOtherCandidates(ctx, leader, c) {
			return e.resign(ctx, lead)
		}
		c.waitForChange(ctx, lead.Done(), recheckInterval)
	}

	return nil
}

// hasOtherCandidates reports whether another process runs a unit that could lead the service of the leader. If
// the leader is gone or the units cannot be read, it returns false.
func (e *leaderElection) hasOtherCandidates(ctx context.Context, leader string, c *candidates) (found bool) {
	// After an error, found is false.
	_ = e.state.View(ctx, func(v *state.View) error {
		// A machine without a unit of the service has no right to list the service's units.
		u, err := v.Unit(leader)
		if err != nil {
			return err
		}
		units, err := v.Units(u.Service)
		if err != nil {
			return err
		}

		for _, u := range units {
			if u.Life != state.Alive || e.isCandidate(c, u.Name) {
				continue
			}
			found, err = v.IsPresent(state.UnitAgent(u.Name))
			if err != nil {
				return err
			}
			if found {
				return nil
			}
		}

		return nil
	})

	return found
}

// isCandidate reports whether this process runs the unit.
func (e *leaderElection) isCandidate(c *candidates, unit string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := c.units[unit]
	return known
}

// resign ends the leadership in the store. It returns an error if this takes more than 5 seconds.
func (e *leaderElection) resign(ctx context.Context, lead *state.Leadership) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return lead.Resign(ctx)
}
