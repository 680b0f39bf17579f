package updater

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// checkRun: no worker runs a step before all servers of the request have come to
// it, and none that is not of the request's version runs one at all.
func (w *world) checkRun(h *host, t Task) {
	r := get[record.Request](w.store, w.keys.Current())
	if r == nil || r.ID != t.Journal.Request {
		w.violate("server %d begins %s of request %d, which is not the current one", h.lrn, t.Step.Name, t.Journal.Request)
		return
	}
	if r.Stop {
		w.violate("server %d begins %s of a request that is stopped", h.lrn, t.Step.Name)
	}
	step := fmt.Sprintf("%d/%d", r.ID, t.Step.Number)
	if v, ok := w.ran[step]; h.worker.version != r.Version || ok && v != h.worker.version {
		w.violate("step %s of the request for %s is run by %s, before by %q", t.Step.Name, r.Version, h.worker.version, v)
	}
	w.ran[step] = h.worker.version
	for _, lrn := range r.Servers {
		s := get[record.Status](w.store, w.keys.Worker(lrn))
		if s == nil && !w.registered(lrn) {
			continue // its record went when it was unregistered
		}
		if s == nil || !s.For(*r) || !s.Reached(t.Step.Number) {
			if s != nil && s.For(*r) && w.rejoined(lrn, *r) {
				continue
			}
			w.violate("server %d begins %s before server %d has come to it", h.lrn, t.Step.Name, lrn)
		}
	}
}

func (w *world) registered(lrn int) bool {
	_, ok := w.store.values[w.keys.BootServer(lrn)]
	return ok
}

// rejoined tells if a server that was unregistered in mid-update has begun its
// steps anew: it was beyond the gate before.
func (w *world) rejoined(lrn int, r record.Request) bool {
	return !w.registered(lrn) && slices.Contains(r.Servers, lrn)
}

// checkRolling: at most one server's member is down for an update.
func (w *world) checkRolling(name string) {
	var down []int
	for _, h := range w.servers {
		if h.members[name].updating && w.registered(h.lrn) {
			down = append(down, h.lrn)
		}
	}
	if len(down) > 1 {
		w.violate("%s is down on servers %v", name, down)
	}
}

// checkAlone: where one is of the new version, none of the request's servers runs another.
func (w *world) checkAlone(h *host, e *effect, c release.Component, version string) {
	if c.Strategy != release.StopAll {
		return
	}
	servers := w.requestServers(e)
	for _, o := range w.servers {
		if m := o.members[c.Name]; m.up && m.version != version && slices.Contains(servers, o.lrn) && w.registered(o.lrn) {
			w.violate("%s %s starts on server %d, and %s runs on %d", c.Name, version, h.lrn, m.version, o.lrn)
		}
	}
}

// checkStop: once a request is stopped, and a worker could hear of it, its work ends.
// A member that is down for an update comes up first, that is a safe point.
func (w *world) checkStop() {
	r := get[record.Request](w.store, w.keys.Current())
	if r == nil || !r.Stop {
		return
	}
	for _, h := range w.servers {
		since := w.stoppedAt
		if h.connected.After(since) {
			since = h.connected
		}
		if h.worker.up && !h.cut && h.effect != nil && w.now.Sub(since) > 12*time.Second {
			w.violate("server %d is still at %s %s after the stop", h.lrn, h.effect.task.Why, w.now.Sub(since))
		}
	}
}
