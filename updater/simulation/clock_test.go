package simulation

import (
	"time"

	"bijou/updater/clock"
	"bijou/updater/record"
)

// The servers' clocks: wrong from the start, or set in mid-update. A worker's own
// time goes on evenly from where its server's clock was when it began; the leader's
// does while an update runs. Operators' machines have clocks, too.

// anySkew is how wrong a clock is: mostly not, else up to an hour either way.
func (w *world) anySkew() time.Duration {
	switch w.r.IntN(4) {
	case 0:
		return w.between(-time.Hour, time.Hour)
	case 1:
		return w.between(-time.Second, time.Second)
	}
	return 0
}

// jump sets a server's clock.
func (w *world) jump(h *host) {
	w.faults["clock set"]++
	h.skew = w.between(-time.Hour, time.Hour)
	w.logf("server %d's clock is %s off", h.lrn, h.skew)
}

// machineTime is what a server's clock says.
func (w *world) machineTime(h *host) time.Time { return w.now.Add(h.skew) }

// workerTime is the worker's own.
func (w *world) workerTime(h *host) time.Time { return w.now.Add(h.worker.off) }

// leaderTime is the leader's, as leader.Observations has it while it leads.
func (w *world) leaderTime(h *host, r *record.Request) time.Time {
	if r == nil || r.Ended() {
		w.steady = h.skew
		w.memory.ForgetServers()
	}
	return w.now.Add(w.steady)
}

// operatorTime is that of some machine with an operator at it.
func (w *world) operatorTime() time.Time {
	if w.calm {
		return w.now
	}
	return w.now.Add(w.anySkew())
}

// within is clock.Clock.Clamp for a time that the worker has not written itself.
func (w *world) within(h *host, t time.Time) time.Time {
	return clock.Clamp(t, h.worker.began.Add(h.worker.off), w.workerTime(h))
}
