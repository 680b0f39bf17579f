package updater

import (
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// effect is what a worker is doing on its server, in stages; between them it may
// be killed, cut off, or told to stop.
type effect struct {
	task      Task
	stage     int
	cancelled bool
}

// begin starts an install or a step, a moment after it was decided.
func (w *world) begin(h *host, t Task) {
	h.journal = t.Journal
	h.effect = &effect{task: t}
	if t.Job == Run {
		w.steprun++
		w.checkRun(h, t)
	}
	w.logf("worker %d (%s) begins %s", h.lrn, h.worker.version, t.Why)
	w.stageAfter(h, w.between(0, time.Second))
}

// stageAfter goes on with what the worker is doing later, unless it has ended.
func (w *world) stageAfter(h *host, d time.Duration) {
	e, epoch := h.effect, h.worker.epoch
	w.after(d, func() {
		if h.effect == e && h.worker.epoch == epoch {
			w.stage(h, e)
		}
	})
}

// stage does the next stage.
func (w *world) stage(h *host, e *effect) {
	if e.task.Job == Install {
		w.install(h, e)
		return
	}
	c := e.task.Step.Component
	if m := h.members[c.Name]; e.cancelled && (m == nil || !m.updating) {
		w.logf("worker %d cancels %s", h.lrn, e.task.Why)
		h.effect = nil
		w.wakeAt(h, &h.worker, w.now, w.work)
		return
	}
	switch {
	case e.task.Step.Action == release.Stop:
		h.members[c.Name].up = false
		w.done(h, "")
	case c.Strategy == release.Rolling:
		w.roll(h, e, c)
	case c.Strategy == release.LeaderOnce:
		w.bring(h, e, c)
	default:
		w.renew(h, e, c)
	}
}

// done journals how it ended, and lets the worker decide again.
func (w *world) done(h *host, failure string) {
	h.journal.Phase, h.journal.Message, h.journal.At = Done, failure, w.now
	if failure != "" {
		h.journal.Phase = Failed
	}
	h.effect = nil
	w.wakeAt(h, &h.worker, w.now.Add(w.between(0, 100*time.Millisecond)), w.work)
}

// install puts the version on the disk, and then the successor takes over.
func (w *world) install(h *host, e *effect) {
	switch {
	case e.cancelled:
		h.effect = nil
		w.wakeAt(h, &h.worker, w.now, w.work)
	case w.chance(15):
		w.faults["install failed"]++
		w.done(h, "cannot install")
	case e.stage == 0:
		e.stage++
		w.stageAfter(h, w.between(0, 4*time.Second))
	default:
		if release.Newer(h.installed, e.task.Version) {
			w.violate("server %d goes back from %s to %s", h.lrn, h.installed, e.task.Version)
		}
		h.installed = e.task.Version
		w.done(h, "")
		if w.chance(20) {
			w.faults["no hand-over"]++
			return
		}
		w.stopWorker(h)
		w.after(w.between(0, 2*time.Second), func() { w.startWorker(h) })
		w.after(w.between(0, 2*time.Second), func() { w.stopUpdater(h); w.startUpdater(h) })
	}
}

// renew updates and starts a component; what has not changed is left alone.
func (w *world) renew(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], componentVersion(c.Name, h.worker.version)
	switch {
	case m.up && m.version == want:
		w.done(h, "")
	case w.chance(25):
		w.faults["step failed"]++
		w.done(h, "cannot update "+c.Name)
	case m.version != want:
		m.up, m.version = false, want
		w.stageAfter(h, w.between(0, 3*time.Second))
	default:
		m.up = true
		w.checkAlone(h, e, c, m.version)
		w.stageAfter(h, w.between(0, time.Second))
	}
}

// roll does one move of a rolling component.
func (w *world) roll(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], componentVersion(c.Name, h.worker.version)
	if m.updating {
		w.raise(h, e, c)
		return
	}
	if h.cut {
		w.stageAfter(h, time.Second)
		return
	}
	turn := get[record.Turn](w.store, w.keys.Turn(c.Name))
	member := Member{LRN: h.lrn, Servers: w.requestServers(e), Turn: turn, Needed: m.version != want, Well: m.up}
	for _, o := range w.servers {
		if o != h && slices.Contains(member.Servers, o.lrn) && o.members[c.Name].up {
			member.Others++
		}
	}
	switch NextRolling(member) {
	case MoveTake:
		w.commit([]Change{put(w.keys.Turn(c.Name), record.Turn{Server: h.lrn, Request: e.task.Journal.Request})})
	case MoveGive:
		w.commit([]Change{remove(w.keys.Turn(c.Name))})
	case MoveDone:
		w.done(h, "")
		return
	case MoveGo:
		m.up, m.updating = false, true
		w.checkRolling(c.Name)
	}
	w.stageAfter(h, w.between(10*time.Millisecond, time.Second))
}

// raise brings a member up that was taken down for the update.
func (w *world) raise(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], componentVersion(c.Name, h.worker.version)
	switch {
	case m.version != want:
		m.version = want
	case w.chance(25):
		w.faults["member did not come up"]++
		w.done(h, "does not answer: "+c.Name)
		return
	default:
		m.up, m.updating = true, false
	}
	w.stageAfter(h, w.between(0, 3*time.Second))
}

// requestServers are the servers of the request that the effect is for.
func (w *world) requestServers(e *effect) []int {
	if h := get[record.History](w.store, w.keys.History(e.task.Journal.Request)); h != nil {
		return h.Servers
	}
	return nil
}

// bring does one move of what one server does for all.
func (w *world) bring(h *host, e *effect, c release.Component) {
	if h.cut {
		w.stageAfter(h, time.Second)
		return
	}
	key := w.keys.Contents(c.Contents.Key)
	l := w.once[c.Name]
	leads := l.holder == h && l.epoch == h.worker.epoch
	switch NextOnce(Duty{Version: h.worker.version, Contents: get[record.Contents](w.store, key), Leads: leads}) {
	case MoveDone:
		w.leave(h, c.Name)
		w.done(h, "")
		return
	case MoveAbort:
		w.leave(h, c.Name)
		w.done(h, "contents of "+c.Name+" failed")
		return
	case MoveGo:
		ok := !w.chance(15)
		w.commit([]Change{put(key, record.Contents{Version: h.worker.version, Success: ok})})
	case MoveTake:
		if l.holder == nil || l.epoch != l.holder.worker.epoch || l.holder.cut && w.now.Sub(l.holder.cutSince) > leaseTTL {
			w.once[c.Name] = lock{h, h.worker.epoch}
		}
	}
	w.stageAfter(h, w.between(10*time.Millisecond, 2*time.Second))
}

func (w *world) leave(h *host, name string) {
	if w.once[name].holder == h {
		delete(w.once, name)
	}
}
