package simulation

import (
	"time"

	"bijou/updater/clock"
	"bijou/updater/record"
)

// The servers' clocks are wrong from the start, or are set in the middle of an update. A worker's own time
// begins with the time of its server's clock at the worker's start, and then runs steadily. The leader's time
// is steady while an update runs. Operators' machines have clocks too.

// anySkew returns a random error of a clock. It is usually zero, and otherwise up to an hour in either
// direction.
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

// machineTime returns the time of a server's clock.
func (w *world) machineTime(h *host) time.Time { return w.now.Add(h.skew) }

// workerTime returns the worker's own time.
func (w *world) workerTime(h *host) time.Time { return w.now.Add(h.worker.off) }

// leaderTime returns the leader's time, as leader.Observations keeps it while it leads.
func (w *world) leaderTime(h *host, r *record.Request) time.Time {
	if r == nil || r.Ended() {
		w.steady = h.skew
		w.memory.ForgetServers()
	}
	return w.now.Add(w.steady)
}

// operatorTime returns the time of a random operator's machine.
func (w *world) operatorTime() time.Time {
	if w.calm {
		return w.now
	}
	return w.now.Add(w.anySkew())
}

// within applies clock.Clock.Clamp to a time that the worker did not write itself.
func (w *world) within(h *host, t time.Time) time.Time {
	return clock.Clamp(t, h.worker.began.Add(h.worker.off), w.workerTime(h))
}
