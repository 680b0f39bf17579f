package simulation

import (
	"time"

	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/worker"
)

// housekeep simulates events that depend only on time: leases end, and a leader is elected.
func (w *world) housekeep() {
	if l := w.leader; l != nil && (!l.updater.up || w.away(l)) {
		w.leader = nil
	}
	for _, i := range w.r.Perm(len(w.servers)) {
		if h := w.servers[i]; w.leader == nil && h.updater.up && !h.cut && !h.hung.After(w.now) {
			w.leader, w.memory, w.steady = h, decide.NewObservations(false), h.skew
			w.wakeAt(h, &h.updater, w.now, w.lead)
		}
	}
	changed := false
	for _, h := range w.servers {
		w.goOver(h)
		was, known := w.present[h.lrn]
		switch here := h.worker.up && !w.away(h); {
		case !here && known:
			delete(w.present, h.lrn)
			changed = true
		case here && (!known || was.Version != h.worker.version):
			w.present[h.lrn] = record.Presence{Version: h.worker.version, Digests: w.digests(h)}
			changed = true
		}
	}
	if w.leader != nil && changed {
		w.wakeAt(w.leader, &w.leader.updater, w.now, w.lead)
	}
	w.inspect()
	w.checkStop()
	w.checkHealth()
	w.after(time.Second, w.housekeep)
}

// goOver restarts an updater as the installed version, once that version is known to work.
func (w *world) goOver(h *host) {
	if !h.updater.up || h.cut || h.hung.After(w.now) || h.updater.build == h.installed {
		return
	}
	if record.IsProven(get[record.Request](w.store, keys.Current), gateOf(w.store), get[record.Recovery](w.store, keys.Recovery)) {
		w.stopUpdater(h)
		w.startUpdater(h)
	}
}

// mischief causes one random fault after another.
func (w *world) mischief() {
	if w.calm {
		return
	}
	h := w.servers[w.r.IntN(len(w.servers))]
	deeds := []func(*host){
		w.killWorker, w.killWorker, w.killUpdater, w.killUpdater, w.partition, w.partition, w.powerCut, w.bury, w.hang, w.jump, w.drift, w.drift, w.sicken, w.sicken, w.sicken, w.breakSource,
		w.command, w.command, w.command, w.command, w.command, w.command,
	}
	deeds[w.r.IntN(len(deeds))](h)
	w.after(w.between(100*time.Millisecond, 25*time.Second), w.mischief)
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
	if h.worker.up {
		w.see(h)
		w.recall(h)
	}
	w.wakeAt(h, &h.worker, w.now, w.work)
	w.wakeAt(h, &h.updater, w.now, w.lead)
}

// hang suspends a server's processes. They continue later without noticing it.
func (w *world) hang(h *host) {
	if h.dead || h.cut || h.hung.After(w.now) {
		return
	}
	w.faults["processes hung"]++
	h.hungSince, h.hung = w.now, w.now.Add(w.between(time.Second, time.Minute))
	w.logf("server %d hangs until %.2f", h.lrn, h.hung.Sub(simStart()).Seconds())
	w.after(h.hung.Sub(w.now), func() { // watchers get all past changes
		if h.worker.up && !h.cut {
			w.after(w.between(0, 200*time.Millisecond), func() {
				if h.worker.up && !h.cut {
					w.see(h)
					w.wakeAt(h, &h.worker, w.now, w.work)
				}
			})
		}
	})
}

// powerCut ends a server's processes. Data that they had not written to disk is lost. Sometimes the disk or
// the clock is lost too.
func (w *world) powerCut(h *host) {
	if h.dead {
		return
	}
	w.faults["power cut"]++
	h.hung = time.Time{}
	w.killWorker(h)
	w.killUpdater(h)
	switch w.r.IntN(5) {
	case 0:
		w.jump(h)
	case 1:
		w.faults["journal lost"]++
		h.disk = worker.Journal{}
	}
}

// bury makes a server die permanently, if the other servers can work without it.
func (w *world) bury(h *host) {
	if h.dead || w.r.IntN(3) > 0 || len(w.servers)-w.deaths() < 3 || w.living() < 2 {
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
