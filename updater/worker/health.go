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

// healthMemory remembers how components were, since one look tells little: a service is restarted, or
// takes its time to be well.
type healthMemory struct {
	request    int // the last update, after which they were looked at
	components map[string]*componentHealth
}

type componentHealth struct {
	wasWell bool
	isIll   bool      // it counts as ill until it is well
	looks   int       // in a row at which something was the matter
	since   time.Time // the first of them
}

// recallHealth reads which components the previous worker found ill. Without that, this worker would count
// them as healthy until it has looked.
func (w *worker) recallHealth(ctx context.Context) (*healthMemory, error) {
	h := &healthMemory{components: map[string]*componentHealth{}}
	var before *record.Inventory
	err := retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			before, err = updater.ReadKey[record.Inventory](v, keys.Inventory(w.o.LRN))
			return err
		})
	})
	if err != nil || before == nil || !before.KnowsHealth() {
		return h, err
	}

	h.request = before.Request
	for name := range before.Ill {
		h.components[name] = &componentHealth{isIll: true}
	}

	return h, nil
}

// begin forgets the components' health during a former update.
func (h *healthMemory) begin(request int) {
	if h.request != request {
		h.request = request
		h.components = map[string]*componentHealth{}
	}
}

// minIllLooks is at how many looks in a row something is the matter with a component that was well before
// it counts as ill.
const minIllLooks = 2

// note takes the result of a look, and adds it to the inventory if it counts. A component that was healthy,
// and does not run or has lost its files, counts as ill at the second look. Otherwise it may still be
// starting, and counts as ill after the time that its manifest gives it.
func (h *healthMemory) note(i *record.Inventory, c release.Component, ill error, runs bool) {
	m := h.components[c.Name]
	if m == nil {
		m = &componentHealth{}
		h.components[c.Name] = m
	}

	if ill == nil {
		*m = componentHealth{wasWell: true}
		return
	}

	if m.looks == 0 {
		m.since = time.Now()
	}
	m.looks++
	fell := m.wasWell && !runs && m.looks >= minIllLooks
	m.isIll = m.isIll || fell || time.Since(m.since) >= c.MaxStart()

	switch {
	case m.isIll:
		if i.Ill == nil {
			i.Ill = map[string]string{}
		}
		i.Ill[c.Name] = record.Shorten(osutil.Explain(ill), record.MaxReason)
	case !m.wasWell:
		i.Unsure = append(i.Unsure, c.Name)
	}
}
