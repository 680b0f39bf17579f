package updater

import (
	"slices"
	"time"

	"bijou/updater/record"
)

// housekeep is what time does by itself: leases end, and somebody leads.
func (w *world) housekeep() {
	if l := w.leader; l != nil && (!l.updater.up || l.cut && w.now.Sub(l.cutSince) > leaseTTL) {
		w.leader = nil
		w.absent = map[int]time.Time{}
	}
	for _, i := range w.r.Perm(len(w.servers)) {
		if h := w.servers[i]; w.leader == nil && h.updater.up && !h.cut {
			w.leader = h
			w.wakeAt(h, &h.updater, w.now, w.lead)
		}
	}
	changed := false
	for _, h := range w.servers {
		here := h.worker.up && (!h.cut || w.now.Sub(h.cutSince) < leaseTTL)
		_, away := w.absent[h.lrn]
		switch {
		case here && away:
			delete(w.absent, h.lrn)
			changed = true
		case !here && !away:
			w.absent[h.lrn] = w.now
			changed = true
		}
	}
	if w.leader != nil && changed {
		w.wakeAt(w.leader, &w.leader.updater, w.now, w.lead)
	}
	w.checkStop()
	w.after(time.Second, w.housekeep)
}

// mischief does one random thing after another.
func (w *world) mischief() {
	if w.calm {
		return
	}
	h := w.servers[w.r.IntN(len(w.servers))]
	deeds := []func(*host){w.killWorker, w.killWorker, w.killUpdater, w.killUpdater, w.partition, w.partition, w.powerCut, w.bury, w.command, w.command, w.command, w.command}
	deeds[w.r.IntN(len(deeds))](h)
	w.after(w.between(100*time.Millisecond, 30*time.Second), w.mischief)
}

func (w *world) killWorker(h *host) {
	if h.dead || !h.worker.up {
		return
	}
	w.faults["worker killed"]++
	w.logf("worker %d is killed", h.lrn)
	w.stopWorker(h)
	w.after(w.between(0, 30*time.Second), func() {
		if !h.dead && !h.worker.up {
			w.startWorker(h)
		}
	})
}

func (w *world) killUpdater(h *host) {
	if h.dead || !h.updater.up {
		return
	}
	w.faults["updater killed"]++
	w.logf("updater %d is killed", h.lrn)
	w.stopUpdater(h)
	w.after(w.between(0, 30*time.Second), func() {
		if !h.dead && !h.updater.up {
			w.startUpdater(h)
		}
	})
}

func (w *world) partition(h *host) {
	if h.dead || h.cut {
		return
	}
	w.faults["partition"]++
	w.logf("server %d is cut off", h.lrn)
	h.cut, h.cutSince = true, w.now
	w.after(w.between(100*time.Millisecond, time.Minute), func() { w.heal(h) })
}

func (w *world) heal(h *host) {
	if !h.cut {
		return
	}
	w.logf("server %d is connected again", h.lrn)
	h.cut, h.connected = false, w.now
	w.wakeAt(h, &h.worker, w.now, w.work)
	w.wakeAt(h, &h.updater, w.now, w.lead)
}

func (w *world) powerCut(h *host) {
	w.faults["power cut"]++
	w.killWorker(h)
	w.killUpdater(h)
}

// bury is a server that dies for good, one that others can do without.
func (w *world) bury(h *host) {
	if h.dead || w.r.IntN(3) > 0 || len(w.servers)-w.deaths() < 3 {
		return
	}
	w.faults["server died"]++
	w.logf("server %d dies", h.lrn)
	w.stopWorker(h)
	w.stopUpdater(h)
	h.dead = true
}

func (w *world) deaths() (n int) {
	for _, h := range w.servers {
		if h.dead {
			n++
		}
	}
	return n
}

// command is an operator who does something, sensible or not.
func (w *world) command(*host) {
	s := w.store.snapshot(w.keys, "", simTimeout, nil)
	switch w.r.IntN(8) {
	case 0:
		w.publish()
	case 1:
		w.addServer(1 + w.r.IntN(60))
	case 2:
		w.order("stop", func() ([]Change, error) { return Halt(s, w.now, "a look") })
	case 3, 4:
		w.order("recover", func() ([]Change, error) { return Recover(s, w.now, "operator") })
	case 5:
		w.order("retry", func() ([]Change, error) { return Retry(s, w.now) })
	case 6:
		until := w.now.Add(w.between(0, 2*time.Minute))
		w.commit([]Change{put(w.keys.Pause(), record.Pause{Until: &until})})
	case 7:
		w.unregisterDead()
	}
}

// order carries a command out, unless it is refused.
func (w *world) order(name string, command func() ([]Change, error)) {
	changes, err := command()
	w.logf("operator: %s: %v", name, err)
	if err == nil {
		w.faults["command "+name]++
		w.commit(changes)
	}
}

// unregisterDead removes servers that have died.
func (w *world) unregisterDead() {
	for _, h := range w.servers {
		if h.dead && w.registered(h.lrn) {
			w.logf("operator: bootserver remove %d", h.lrn)
			w.commit(Unregister(w.store.snapshot(w.keys, "", simTimeout, nil), h.lrn))
		}
	}
}

// settle ends the mischief: what can live lives, and an operator looks after
// what is stopped.
func (w *world) settle() {
	w.calm = true
	w.logf("calm")
	for _, h := range w.servers {
		w.heal(h)
		if !h.dead && !h.worker.up {
			w.startWorker(h)
		}
		if !h.dead && !h.updater.up {
			w.startUpdater(h)
		}
	}
	w.after(20*time.Second, w.care)
}

// care does what the documentation tells operators to do.
func (w *world) care() {
	w.unregisterDead()
	s := w.store.snapshot(w.keys, "", simTimeout, nil)
	if s.Current != nil && s.Current.Stop {
		w.orderOneOf(s)
	}
	w.after(20*time.Second, w.care)
}

// orderOneOf does what the documentation offers for a stopped request.
func (w *world) orderOneOf(s Snapshot) {
	switch gone := len(s.unregistered()) > 0; {
	case gone && w.r.IntN(2) == 0:
		i := slices.IndexFunc(w.servers, func(h *host) bool { return !h.dead })
		w.stopUpdater(w.servers[i])
		w.startUpdater(w.servers[i])
	case gone || w.r.IntN(2) == 0:
		w.order("recover", func() ([]Change, error) { return Recover(s, w.now, "operator") })
	default:
		w.order("retry", func() ([]Change, error) { return Retry(s, w.now) })
	}
}
