package simulation

import (
	"slices"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
	"bijou/updater/worker"
)

// roll carries out one move of a rolling component: it reads the facts, decides, and acts a little later,
// when the facts may have changed.
func (w *world) roll(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], h.plan().component(c.Name)
	switch {
	case m.updating:
		w.raise(h, e, c)
		return
	case h.cut:
		w.stageAfter(h, time.Second)
		return
	}
	view := worker.RollingSnapshot{LRN: h.lrn, Servers: e.request.Servers, Turn: get[record.Turn](w.store, keys.Turn(c.Name)), NeedsUpdate: m.version != want, Healthy: m.up}
	for _, o := range w.servers {
		if o != h && slices.Contains(view.Servers, o.lrn) && o.members[c.Name].up {
			view.HealthyOthers++
		}
	}
	switch move := worker.NextRolling(view); move {
	case worker.MoveTake, worker.MoveGive:
		w.actAfter(h, func() { w.trade(h, e, c, move) })
	case worker.MoveDone:
		w.done(h, "")
	case worker.MoveGo:
		w.actAfter(h, func() { w.takeDown(h, e, c) })
	default:
		w.stageAfter(h, w.between(10*time.Millisecond, time.Second))
	}
}

// actAfter carries out a worker's decision later, unless the worker has ended.
func (w *world) actAfter(h *host, do func()) {
	if w.chance(10) {
		w.hang(h)
	}
	e, epoch := h.effect, h.worker.epoch
	w.after(w.between(0, 50*time.Millisecond), func() {
		w.onceAwake(h, func() {
			if h.effect == e && h.worker.epoch == epoch {
				do()
			}
		})
	})
}

// trade takes the turn or releases it, if that is still needed.
func (w *world) trade(h *host, e *effect, c release.Component, move worker.Move) {
	defer w.stageAfter(h, w.between(10*time.Millisecond, time.Second))
	if h.cut && !w.slips(h) {
		return
	}
	key := keys.Turn(c.Name)
	now := worker.RollingSnapshot{LRN: h.lrn, Servers: e.request.Servers, Turn: get[record.Turn](w.store, key)}
	switch still, err := now.ConfirmMove(move, record.IsCurrent(get[record.Request](w.store, keys.Current), e.request)); {
	case err != nil:
		w.faults["turn of a stale request"]++
	case still && move == worker.MoveTake:
		w.commit([]updater.Change{updater.Put(key, record.Turn{Server: h.lrn, Request: e.request.ID})})
	case still:
		w.commit([]updater.Change{updater.Remove(key)})
	}
}

// takeDown stops the member.
func (w *world) takeDown(h *host, e *effect, c release.Component) {
	defer w.stageAfter(h, w.between(10*time.Millisecond, time.Second))
	if e.cancelled {
		return
	}
	m := h.members[c.Name]
	m.up, m.updating, m.given = false, true, !w.counts(h)
	w.checkRolling(c.Name)
}

// raise starts a member that was stopped for the update.
func (w *world) raise(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], h.plan().component(c.Name)
	switch {
	case m.version != want:
		m.version = want
	case w.chance(25):
		w.faults["member did not come up"]++
		w.done(h, "does not answer: "+c.Name)
		return
	default:
		m.up, m.updating, m.given = true, false, false
	}
	w.stageAfter(h, w.between(0, 3*time.Second))
}

// bring carries out one move of an action that one server does for all.
func (w *world) bring(h *host, e *effect, c release.Component) {
	if h.cut {
		w.stageAfter(h, time.Second)
		return
	}
	d := worker.OnceSnapshot{Version: e.request.Version, Plan: w.digests(h).Plan, Contents: get[record.Contents](w.store, keys.Contents(c.Contents.Key)), Leads: w.leads(h, c.Name)}
	switch worker.NextOnce(d) {
	case worker.MoveDone:
		w.leave(h, c.Name)
		w.done(h, "")
		return
	case worker.MoveAbort:
		w.leave(h, c.Name)
		w.done(h, "contents of "+c.Name+" failed")
		return
	case worker.MoveGo:
		w.actAfter(h, func() { w.deliver(h, e, c) })
		return
	case worker.MoveTake:
		if l := w.once[c.Name]; l.holder == nil || l.epoch != l.holder.worker.epoch || w.away(l.holder) {
			w.once[c.Name] = lock{h, h.worker.epoch}
		}
	}
	w.stageAfter(h, w.between(10*time.Millisecond, 2*time.Second))
}

// leads reports whether the server was elected for the action.
func (w *world) leads(h *host, name string) bool {
	l := w.once[name]
	return l.holder == h && l.epoch == h.worker.epoch
}

// deliver writes the result under the same conditions as a worker.
func (w *world) deliver(h *host, e *effect, c release.Component) {
	defer w.stageAfter(h, w.between(10*time.Millisecond, 2*time.Second))
	switch {
	case e.cancelled || h.cut && !w.slips(h) || !w.leads(h, c.Name):
	case !record.IsCurrent(get[record.Request](w.store, keys.Current), e.request):
		w.faults["result of a stale request"]++
	default:
		w.commit([]updater.Change{updater.Put(keys.Contents(c.Contents.Key), record.Contents{Version: e.request.Version, Plan: w.digests(h).Plan, Success: !w.chance(15), Server: h.lrn})})
	}
}

func (w *world) leave(h *host, name string) {
	if w.once[name].holder == h {
		delete(w.once, name)
	}
}
