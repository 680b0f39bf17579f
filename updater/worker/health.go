package worker

import (
	"context"
	"time"

	"bijou/state/keyspace"
	"bijou/state/osutil"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// healthMemory remembers the health of components between checks. A single check is not enough, since a
// service may just be restarting or be slow to start.
type healthMemory struct {
	request    int // the ID of the last update, after which the components were checked
	components map[string]*componentHealth
}

// componentHealth is what the previous checks of one component have found.
type componentHealth struct {
	wasWell bool      // a check has found the component healthy
	isIll   bool      // the component counts as ill until a check finds it healthy
	looks   int       // the number of consecutive checks that found a problem
	since   time.Time // the time of the first of these checks
}

// recallHealth returns a memory with the components that the previous worker of this server has found ill.
// With an empty memory, these components would not count as ill until they have again had the time to start.
// The memory is empty if the previous worker has not recorded the components' health.
func (w *worker) recallHealth(ctx context.Context) (*healthMemory, error) {
	h := &healthMemory{components: map[string]*componentHealth{}}
	var before *record.Inventory
	err := retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			before, err = updater.ReadKey[record.Inventory](v, keys.Inventory(w.o.LRN))
			return err
		})
	})
	if err != nil {
		return h, err
	}
	if before == nil || !before.KnowsHealth() {
		return h, nil
	}

	h.request = before.Request
	for name := range before.Ill {
		h.components[name] = &componentHealth{isIll: true}
	}

	return h, nil
}

// begin prepares the memory for checks after the given update. If an earlier update is in the memory, begin
// forgets the health of all components.
func (h *healthMemory) begin(request int) {
	if h.request != request {
		h.request = request
		h.components = map[string]*componentHealth{}
	}
}

// minIllLooks is the number of consecutive checks with a problem after which a previously healthy component
// counts as ill.
const minIllLooks = 2

// note records the result of a check in the memory. problem is nil if the component is healthy, and
// mayRecover says whether it may still become healthy without help, since its services run. A component that
// was healthy, and no longer runs or has lost files, counts as ill after minIllLooks checks. Any other
// component with a problem may still be starting, and counts as ill only after the start time in its
// manifest.
//
// note adds an ill component to inv.Ill. It adds a component with a problem to inv.Unsure if the component is
// not ill, and no check in the memory has found it healthy.
func (h *healthMemory) note(inv *record.Inventory, c release.Component, problem error, mayRecover bool) {
	m := h.components[c.Name]
	if m == nil {
		m = &componentHealth{}
		h.components[c.Name] = m
	}

	if problem == nil {
		*m = componentHealth{wasWell: true}
		return
	}

	if m.looks == 0 {
		m.since = time.Now()
	}
	m.looks++
	hasBrokenDown := m.wasWell && !mayRecover && m.looks >= minIllLooks
	hadTimeToStart := time.Since(m.since) >= c.MaxStart()
	m.isIll = m.isIll || hasBrokenDown || hadTimeToStart

	// A component that was healthy counts as healthy until it is ill.
	switch {
	case m.isIll:
		if inv.Ill == nil {
			inv.Ill = map[string]string{}
		}
		inv.Ill[c.Name] = record.Shorten(osutil.Explain(problem), record.MaxReason)
	case !m.wasWell:
		inv.Unsure = append(inv.Unsure, c.Name)
	}
}
