package simulation

import (
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
	"bijou/updater/worker"
)

// effect is a worker's action on its server, in stages. Between stages the worker may be killed, cut off, or
// stopped.
type effect struct {
	task      worker.Task
	request   record.Request // the request that the worker knew at the start
	stage     int
	cancelled bool
}

// begin starts an install or a step, a moment after the decision.
func (w *world) begin(h *host, t worker.Task) {
	h.journal, h.disk = t.Journal, t.Journal
	h.effect = &effect{task: t, request: *h.current}
	if t.Job == worker.RunStep {
		w.steprun++
		w.checkRun(h, t)
	}
	w.logf("worker %d (%s) begins %s", h.lrn, h.worker.version, t.Why)
	w.stageAfter(h, w.between(0, time.Second))
}

// stageAfter continues the worker's action later, unless the worker has ended.
func (w *world) stageAfter(h *host, d time.Duration) {
	e, epoch := h.effect, h.worker.epoch
	w.after(d, func() {
		w.onceAwake(h, func() {
			if h.effect == e && h.worker.epoch == epoch {
				w.stage(h, e)
			}
		})
	})
}

// stage runs the next stage.
func (w *world) stage(h *host, e *effect) {
	if e.task.Job == worker.Install {
		w.install(h, e)
		return
	}
	c := e.task.Step.Component
	if m := h.members[c.Name]; e.cancelled && (m == nil || !m.updating) {
		w.logf("worker %d cancels %s", h.lrn, e.task.Why)
		h.effect = nil
		w.leave(h, c.Name)
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

// done writes the result into the journal and lets the worker decide again. If the server loses power before
// the write is synced, or if its disk is full, the entry is lost.
func (w *world) done(h *host, failure string) {
	h.journal.Phase, h.journal.Message, h.journal.At = worker.Done, failure, w.workerTime(h)
	if failure != "" {
		h.journal.Phase = worker.Failed
	}
	h.effect = nil
	if w.chance(30) {
		w.faults["journal not written"]++
	} else {
		h.disk = h.journal
	}
	w.wakeAt(h, &h.worker, w.now.Add(w.between(0, 100*time.Millisecond)), w.work)
}

// install writes the version to the disk. Then the successor takes over.
func (w *world) install(h *host, e *effect) {
	switch {
	case e.cancelled && e.stage < 2:
		h.effect = nil
		w.wakeAt(h, &h.worker, w.now, w.work)
	case e.stage < 2 && w.chance(15):
		w.faults["install failed"]++
		w.done(h, "cannot install")
	case e.stage == 0:
		e.stage++
		w.stageAfter(h, w.between(0, 4*time.Second))
	case e.stage == 1 && w.refuses(h, e.request):
		w.done(h, "its files were replaced")
	case e.stage == 1:
		if release.Newer(h.installed.version, e.task.Version) && !w.downgrades[e.task.Version] {
			w.violate("server %d goes back from %s to %s", h.lrn, h.installed.version, e.task.Version)
		}
		e.stage++
		h.installed, h.byHand = w.current(e.task.Version), w.chance(30)
		w.stageAfter(h, w.between(0, 50*time.Millisecond))
	case h.cut:
		w.stageAfter(h, time.Second)
	default:
		w.handOver(h)
	}
}

// handOver announces the handover to the successor, if a request needs it, and carries it out.
func (w *world) handOver(h *host) {
	if s := w.workerSnapshot(h).HandOverRecord(); s != nil && record.AcceptsStatus(get[record.Request](w.store, keys.Current), *s) {
		s.At = w.workerTime(h)
		w.commit([]updater.Change{updater.Put(keys.Worker(h.lrn), *s)})
		h.status = s
	}
	w.done(h, "")
	if w.chance(20) {
		w.faults["no hand-over"]++
		return
	}
	w.stopWorker(h)
	after := w.between(0, 2*time.Second)
	if w.chance(20) {
		w.faults["successor did not come up"]++
		after = w.between(time.Minute, 3*time.Minute)
	}
	w.after(after, func() {
		if !h.dead && !h.worker.up {
			w.startWorker(h)
		}
	})
}

// renew updates and starts a component, unless it is unchanged.
func (w *world) renew(h *host, e *effect, c release.Component) {
	m, want := h.members[c.Name], h.plan().component(c.Name)
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
