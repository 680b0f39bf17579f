package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
	"bijou/updater/worker"
)

// heard reports whether the server knows the latest change of the request. A change reaches a server after a
// moment, or later if the server was cut off or hung.
func (w *world) heard(h *host) bool {
	since := w.changedAt
	for _, t := range []time.Time{h.connected, h.hung} {
		if t.After(since) {
			since = t
		}
	}
	return !h.cut && w.now.Sub(since) > hearing
}

// checkRun checks three rules of a worker that begins a step. All servers of the request have reached that
// step. The worker has the request's version. The worker does not know that the request is stopped or gone.
func (w *world) checkRun(h *host, t worker.Task) {
	r := *h.current
	if now := get[record.Request](w.store, keys.Current); !record.IsCurrent(now, r) && w.heard(h) {
		w.violate("server %d begins %s of request %d, which does not run", h.lrn, t.Step.Name, r.ID)
	}
	step := fmt.Sprintf("%d/%d", r.ID, t.Step.Number)
	own := fmt.Sprintf("%+v %s", h.plan(), t.Step.Name)
	if before, ok := w.ran[step]; !w.blind && (h.worker.version != r.Version || ok && before != own) {
		w.violate("step %s of the request for %s is run by %s, before by %q", t.Step.Name, r.Version, own, before)
	}
	w.ran[step] = own
	for _, lrn := range r.Servers {
		if w.reached[[2]int{r.ID, lrn}] < t.Step.Number {
			w.violate("server %d begins %s before server %d has come to it", h.lrn, t.Step.Name, lrn)
		}
	}
}

func (w *world) registered(lrn int) bool {
	_, ok := w.store.values[keys.BootServer(lrn)]
	return ok
}

// partOf reports whether the request includes the server.
func partOf(r record.Request, h *host) bool { return slices.Contains(r.Servers, h.lrn) }

// counts reports whether the current request includes the server.
func (w *world) counts(h *host) bool {
	r := get[record.Request](w.store, keys.Current)
	return r != nil && partOf(*r, h)
}

// checkRolling checks that the update has taken down at most one server's member.
func (w *world) checkRolling(name string) {
	var down []int
	for _, h := range w.servers {
		if m := h.members[name]; m.updating && !m.given && w.counts(h) {
			down = append(down, h.lrn)
		}
	}
	if len(down) > 1 {
		w.violate("%s is down on servers %v", name, down)
	}
}

// checkAlone checks that no server of the request runs an old version once one runs the new version.
func (w *world) checkAlone(h *host, e *effect, c release.Component, version string) {
	if c.Strategy != release.StopAll || !w.counts(h) {
		return
	}
	for _, o := range w.servers {
		if m := o.members[c.Name]; m.up && m.version != version && partOf(e.request, o) && w.counts(o) {
			w.violate("%s %s starts on server %d, and %s runs on %d", c.Name, version, h.lrn, m.version, o.lrn)
		}
	}
}

// checkStop checks that a worker's action ends soon after its request does. A member that is down for an
// update must come up before that, because only then is a stop safe.
func (w *world) checkStop() {
	now := get[record.Request](w.store, keys.Current)
	for _, h := range w.servers {
		if !h.worker.up || h.effect == nil || record.IsCurrent(now, h.effect.request) || !w.heard(h) {
			continue
		}
		if w.now.Sub(w.changedAt) > 12*time.Second && w.now.Sub(h.connected) > 12*time.Second && w.now.Sub(h.hung) > 12*time.Second {
			w.violate("server %d is still at %s %s after the stop", h.lrn, h.effect.task.Why, w.now.Sub(w.changedAt))
		}
	}
}

// checkReports checks that each attempt was reported exactly once, and that the history has the end of each
// request.
func (w *world) checkReports() {
	for _, h := range below[record.History](w.store, keys.AllHistory) {
		if h.Result == record.Running {
			w.violate("request %d has no end", h.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.attempts)) {
		if w.reports[id] != 1 {
			w.violate("request and attempt %s have %d reports", id, w.reports[id])
		}
	}
}

// checkPatience checks that no update is stopped for lack of progress while there is progress. If the clocks
// of leaders differ by less than leaders can notice, a stop may be early by that difference.
func (w *world) checkPatience(s decide.Snapshot, a decide.Action) {
	if a.Verb != decide.Stop || !strings.Contains(a.Why, "no progress for") {
		return
	}
	w.faults["stopped without progress"]++
	if waited := w.now.Sub(w.movedAt); waited < s.Config.WorkerTimeout-min(s.Config.WorkerTimeout/4, time.Minute) {
		w.violate("the update is stopped %s after something has moved, not %s", waited, s.Config.WorkerTimeout)
	}
}
