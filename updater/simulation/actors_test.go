package simulation

import (
	"time"

	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/worker"
)

// wakeAt lets a process decide again at the given time, unless it decides earlier.
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
		w.onceAwake(h, func() {
			if p.up && p.epoch == epoch { // the process may have been killed while it hung
				look(h)
			}
		})
	}
	p.wake = e
}

// onceAwake calls the function at once or, if the server's processes hang, when they no longer hang.
func (w *world) onceAwake(h *host, do func()) {
	if !h.hung.After(w.now) {
		do()
		return
	}
	w.after(h.hung.Sub(w.now), do)
}

// away reports whether the server's sessions have ended.
func (w *world) away(h *host) bool {
	return h.cut && w.now.Sub(h.cutSince) > leaseTTL || h.hung.After(w.now) && w.now.Sub(h.hungSince) > leaseTTL
}

func (w *world) startWorker(h *host) {
	h.worker.up, h.worker.build, h.effect, h.all = true, h.installed, nil, nil
	h.worker.epoch++
	h.worker.began, h.worker.off = w.now, h.skew
	h.looked, h.allAt, h.moves, h.movedAt = time.Time{}, time.Time{}, 0, time.Time{}
	h.journal = h.disk
	h.journal.At = w.within(h, h.journal.At)
	h.current, h.gate, h.status = nil, record.Gate{}, nil
	if !h.cut {
		w.see(h)
		w.recall(h)
	}
	w.wakeAt(h, &h.worker, w.now, w.work)
}

func (w *world) stopWorker(h *host) {
	h.worker.up, h.effect = false, nil
	h.worker.epoch++
}

// startUpdater starts an updater, which first acts on AtStart.
func (w *world) startUpdater(h *host) {
	h.updater.up, h.updater.build = true, h.installed
	h.updater.epoch++
	if !h.cut {
		if changes := decide.AtStart(w.store.snapshot(h.updater.version), w.machineTime(h)); changes != nil {
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

// lead runs one turn of the leader's loop: a snapshot, a decision, and a commit a little later. The commit
// fails if anything has changed since the snapshot, or if another server leads.
func (w *world) lead(h *host) {
	if w.leader != h || h.cut {
		return
	}
	s := w.store.snapshot(h.updater.version)
	s.Present, s.Inventories = w.present, w.inventories(s.Current)
	w.mutateSnapshot(&s)
	now := w.leaderTime(h, s.Current)
	w.memory.Update(&s, w.present, now)
	a := decide.Next(s, now)
	if a.Verb == decide.Wait {
		if !a.Until.IsZero() {
			w.wakeAt(h, &h.updater, later(w.now.Add(a.Until.Sub(now)), w.now), w.lead)
		}
		return
	}
	revision, request, epoch := w.store.revision, w.store.revisions[keys.Current], h.updater.epoch
	w.after(w.between(0, 30*time.Millisecond), func() {
		w.onceAwake(h, func() {
			if h.updater.epoch != epoch || h.cut && !w.slips(h) {
				return
			}
			holds := w.store.revision == revision || a.Verb == decide.Open && w.store.revisions[keys.Current] == request
			if holds && w.leader == h {
				w.logf("leader %d: %s: %s", h.lrn, a.Verb, a.Why)
				w.checkPatience(s, a)
				w.commit(a.Changes)
			}
			w.wakeAt(h, &h.updater, w.now.Add(time.Millisecond), w.lead)
		})
	})
}

// slips reports whether a commit succeeds but the writer does not get the answer.
func (w *world) slips(h *host) bool {
	return w.now.Sub(h.cutSince) < 30*time.Millisecond && w.chance(2)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b.Add(time.Millisecond)
}

// see lets a worker read the request and the configuration.
func (w *world) see(h *host) {
	h.current, h.gate = get[record.Request](w.store, keys.Current), gateOf(w.store)
	h.timeout = w.store.config().WorkerTimeout
}

// recall lets a worker read its own record, which it usually remembers.
func (w *world) recall(h *host) {
	h.status = get[record.Status](w.store, keys.Worker(h.lrn))
	if h.status != nil {
		h.status.At = w.within(h, h.status.At)
	}
}

// hear notifies workers of their watched keys a little later.
func (w *world) hear() {
	for _, h := range w.servers {
		epoch := h.worker.epoch
		w.after(w.between(0, 200*time.Millisecond), func() {
			if h.worker.up && h.worker.epoch == epoch && !h.cut && !h.hung.After(w.now) { // otherwise the worker will read everything later
				w.see(h)
				w.wakeAt(h, &h.worker, w.now, w.work)
			}
		})
	}
}

// workerSnapshot returns the worker's snapshot.
func (w *world) workerSnapshot(h *host) worker.Snapshot {
	return worker.Snapshot{
		LRN: h.lrn, Own: h.worker.version, Digests: w.digests(h), Steps: w.stepsOf(h.plan()), Timeout: h.timeout, Current: h.current, Gate: h.gate, Status: h.status,
		Journal: h.journal, Busy: h.effect != nil, Workers: h.all, LookedAt: h.looked, WorkersReadAt: h.allAt, Progress: h.moves, MovedAt: h.movedAt,
	}
}

// work runs one turn of a worker's loop.
func (w *world) work(h *host) {
	if h.cut {
		w.wakeAt(h, &h.worker, w.now.Add(time.Second), w.work)
		return
	}
	now := w.workerTime(h)
	t := worker.NextTask(w.workerSnapshot(h), now)
	h.all = nil
	switch t.Job {
	case worker.Idle:
		if !t.Until.IsZero() {
			w.wakeAt(h, &h.worker, later(w.now.Add(t.Until.Sub(now)), w.now), w.work)
		}
	case worker.Cancel:
		h.effect.cancelled = true
	case worker.Look:
		w.see(h)
		w.recall(h)
		seat := w.workerSnapshot(h)
		seat.ObserveWorkers(byServer[record.Status](w.store, keys.Workers), now)
		h.all, h.looked, h.allAt, h.moves, h.movedAt = seat.Workers, seat.LookedAt, seat.WorkersReadAt, seat.Progress, seat.MovedAt
		w.wakeAt(h, &h.worker, w.now.Add(time.Millisecond), w.work)
	case worker.Write:
		w.record(h, t.Status)
	case worker.Install, worker.RunStep:
		w.begin(h, t)
	}
}

// record commits a worker's record a little later, if the record still belongs to the current request.
func (w *world) record(h *host, status record.Status) {
	epoch := h.worker.epoch
	w.after(w.between(0, 50*time.Millisecond), func() {
		w.onceAwake(h, func() {
			if h.worker.epoch != epoch || h.cut && !w.slips(h) {
				return
			}
			status.At = w.workerTime(h)
			if record.AcceptsStatus(get[record.Request](w.store, keys.Current), status) {
				w.logf("worker %d (%s): %+v", h.lrn, h.worker.version, status)
				w.commit([]updater.Change{updater.Put(keys.Worker(h.lrn), status)})
				h.status = &status
			} else {
				w.see(h)
				w.recall(h)
			}
			w.wakeAt(h, &h.worker, w.now.Add(time.Millisecond), w.work)
		})
	})
}
