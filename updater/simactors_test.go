package updater

import (
	"strings"
	"time"

	"bijou/updater/record"
)

// commit writes to the store, counts reports, and wakes who watches.
func (w *world) commit(changes []Change) {
	before := get[record.Request](w.store, w.keys.Current())
	w.store.commit(changes)
	for _, c := range changes {
		if strings.HasPrefix(c.Key, w.keys.Outbox()) {
			delete(w.store.values, c.Key) // alerts are sent at once; nothing reads them here
		}
	}
	current, contested := false, false
	for _, c := range changes {
		if a, ok := c.Value.(record.Alert); ok && record.Terminal(a.Kind) {
			id := strings.TrimSuffix(a.ID, "-"+a.Kind)
			w.reports[id]++
			w.ends++
			if w.reports[id] > 1 {
				w.violate("request and attempt %s have %d reports", id, w.reports[id])
			}
		}
		current = current || c.Key == w.keys.Current() || c.Key == w.keys.Gate()
		contested = contested || strings.HasPrefix(c.Key, w.keys.Turns()) || strings.HasPrefix(c.Key, w.keys.AllContents())
	}
	after := get[record.Request](w.store, w.keys.Current())
	if after != nil && after.Stop && (before == nil || !before.Stop) {
		w.stoppedAt = w.now
	}
	for _, h := range w.servers {
		w.wakeAt(h, &h.updater, w.now.Add(w.between(0, 200*time.Millisecond)), w.lead)
		if current || contested && h.effect != nil {
			w.wakeAt(h, &h.worker, w.now.Add(w.between(0, 200*time.Millisecond)), w.work)
		}
	}
}

// wakeAt has a process look again at that time, if it would not look before.
func (w *world) wakeAt(h *host, p *process, at time.Time, look func(*host)) {
	if !p.up || p.wake != nil && p.wake.do != nil && !p.wake.at.After(at) {
		return
	}
	if p.wake != nil {
		p.wake.do = nil
	}
	e := w.after(at.Sub(w.now), nil)
	epoch := p.epoch
	e.do = func() {
		e.do = nil
		if p.up && p.epoch == epoch {
			look(h)
		}
	}
	p.wake = e
}

func (w *world) startWorker(h *host) {
	h.worker.up, h.worker.version, h.effect, h.all = true, h.installed, nil, nil
	h.worker.epoch++
	h.looked = time.Time{}
	w.wakeAt(h, &h.worker, w.now, w.work)
}

func (w *world) stopWorker(h *host) {
	h.worker.up, h.effect = false, nil
	h.worker.epoch++
}

// startUpdater starts an updater, which first of all does what AtStart says.
func (w *world) startUpdater(h *host) {
	h.updater.up, h.updater.version = true, h.installed
	h.updater.epoch++
	if !h.cut {
		if changes := AtStart(w.snapshot(h), w.now); changes != nil {
			w.logf("updater %d recovers at its start", h.lrn)
			w.commit(changes)
		}
	}
	w.wakeAt(h, &h.updater, w.now, w.lead)
}

func (w *world) stopUpdater(h *host) {
	h.updater.up = false
	h.updater.epoch++
}

func (w *world) snapshot(h *host) Snapshot {
	return w.store.snapshot(w.keys, h.updater.version, simTimeout, w.absent)
}

// lead is one turn of the leader's loop: a snapshot, a decision, and a commit a
// little later that fails if anything has changed meanwhile, or another leads.
func (w *world) lead(h *host) {
	if w.leader != h || h.cut {
		return
	}
	a := Next(w.snapshot(h), w.now)
	if a.Verb == Wait {
		if !a.Until.IsZero() {
			w.wakeAt(h, &h.updater, later(a.Until, w.now), w.lead)
		}
		return
	}
	revision, request, epoch := w.store.revision, w.store.revisions[w.keys.Current()], h.updater.epoch
	w.after(w.between(0, 30*time.Millisecond), func() {
		if h.updater.epoch != epoch || h.cut && !w.slips(h) {
			return
		}
		holds := w.store.revision == revision || a.Verb == Open && w.store.revisions[w.keys.Current()] == request
		if holds && w.leader == h {
			w.logf("leader %d: %s: %s", h.lrn, a.Verb, a.Why)
			w.commit(a.Changes)
		}
		w.wakeAt(h, &h.updater, w.now.Add(time.Millisecond), w.lead)
	})
}

// slips tells if a commit gets through although its writer never hears of it.
func (w *world) slips(h *host) bool {
	return w.now.Sub(h.cutSince) < 30*time.Millisecond && w.chance(2)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.Add(time.Millisecond)
}

// seat is what a worker knows.
func (w *world) seat(h *host) Seat {
	return Seat{
		Keys: w.keys, LRN: h.lrn, Own: h.worker.version, Steps: w.steps, Timeout: simTimeout,
		Current: get[record.Request](w.store, w.keys.Current()), Gate: gateOf(w.store, w.keys), Status: get[record.Status](w.store, w.keys.Worker(h.lrn)),
		Journal: h.journal, Busy: h.effect != nil, All: h.all, LookedAt: h.looked,
	}
}

// work is one turn of a worker's loop.
func (w *world) work(h *host) {
	if h.cut {
		w.wakeAt(h, &h.worker, w.now.Add(time.Second), w.work)
		return
	}
	t := NextTask(w.seat(h), w.now)
	h.all = nil
	switch t.Job {
	case Idle:
		if !t.Until.IsZero() {
			w.wakeAt(h, &h.worker, later(t.Until, w.now), w.work)
		}
	case Cancel:
		h.effect.cancelled = true
	case Look:
		h.all, h.looked = byServer[record.Status](w.store, w.keys.Workers()), w.now
		w.wakeAt(h, &h.worker, w.now.Add(time.Millisecond), w.work)
	case Write:
		w.record(h, t.Status)
	case Install, Run:
		w.begin(h, t)
	}
}

// record commits a worker's record a little later, under the condition that the
// request is still the same and not stopped.
func (w *world) record(h *host, status record.Status) {
	epoch, revision := h.worker.epoch, w.store.revisions[w.keys.Worker(h.lrn)]
	w.after(w.between(0, 50*time.Millisecond), func() {
		r := get[record.Request](w.store, w.keys.Current())
		holds := r != nil && r.ID == status.Request && r.Attempt == status.Attempt && !r.Stop && w.store.revisions[w.keys.Worker(h.lrn)] == revision
		if h.worker.epoch != epoch || h.cut && !w.slips(h) {
			return
		}
		if holds {
			w.logf("worker %d (%s): %+v", h.lrn, h.worker.version, status)
			w.commit([]Change{put(w.keys.Worker(h.lrn), status)})
		}
		w.wakeAt(h, &h.worker, w.now.Add(time.Millisecond), w.work)
	})
}
