package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// These are the ways in which a fleet can break the promises about health and about failed lookups for
// releases. The rules must notice each of them, since a rule that notices no fault proves nothing.
const (
	seesNothing    = "workers do not see what is ill"
	reasonsAreNews = "another reason is another finding"
	awayIsOver     = "what was found on a server whose worker is away is over"
	forgetsTelling = "it is not recorded that an outage was reported"
)

const (
	simSurvey      = 5 * time.Second  // the interval between two checks of a worker
	simMaxCheckAge = 30 * time.Second // the time for which checks for releases may fail
	simCheck       = 8 * time.Second  // the interval between two checks for releases
	noticing       = time.Minute      // the longest time until an illness is recorded
)

// sicken ends a component on a server between updates. It does not choose rolling components.
func (w *world) sicken(h *host) {
	r := get[record.Request](w.store, keys.Current)
	if r == nil || !r.Succeeded() || h.dead || h.effect != nil || !partOf(*r, h) {
		return
	}
	for _, c := range w.manifest.Components {
		m := h.members[c.Name]
		if m == nil || !m.up || c.Strategy == release.Rolling || !w.chance(3) {
			continue
		}
		w.faults["component ill"]++
		w.logf("on server %d %s is ill", h.lrn, c.Name)
		m.up, m.ill = false, true
		w.after(w.between(0, 2*simSurvey), func() {
			if w.leader != nil {
				w.wakeAt(w.leader, &w.leader.updater, w.now, w.lead)
			}
		})
	}
}

// addHealth adds the worker's view of its server's health. An earlier version does not check health.
func (w *world) addHealth(h *host, i *record.Inventory) {
	i.At = w.workerTime(h)
	if h.former {
		return
	}
	i.HealthAt = i.At
	for name, m := range h.members {
		if m.ill && !m.up && w.mutation != seesNothing {
			if i.Ill == nil {
				i.Ill = map[string]string{}
			}
			i.Ill[name] = fmt.Sprintf("process %d has died", w.now.Sub(simStart())/(10*time.Second))
		}
	}
}

// canBeSeen reports whether the leader can know which components are ill on a server.
func (w *world) canBeSeen(h *host) bool {
	r := get[record.Request](w.store, keys.Current)
	l := w.leader
	return r != nil && r.Succeeded() && l != nil && !l.cut && !l.hung.After(w.now) && w.registered(h.lrn) && partOf(*r, h) &&
		!h.former && h.worker.up && !h.cut && !h.hung.After(w.now) && h.effect == nil &&
		h.worker.version == r.Version && !record.Differ(w.digests(h).Sums, r.Sums) && !record.Differ(w.digests(h).Plan, r.Plan) &&
		h.status != nil && h.status.IsFor(*r) && h.status.Finished
}

// checkHealth checks that an ill component is recorded soon, and that the fleet then no longer counts as up
// to date.
func (w *world) checkHealth() {
	for _, h := range w.servers {
		for name, m := range h.members {
			if m.ill && m.up {
				w.faults["what was ill is well"]++
				m.ill = false
			}
			if !m.ill || !w.canBeSeen(h) {
				m.told = m.told && m.ill && w.counts(h)
				m.seenSince = time.Time{}
				continue
			}
			if m.seenSince.IsZero() {
				m.seenSince = w.now
			}
			if w.now.Sub(m.seenSince) < noticing {
				continue
			}
			w.faults["ill for long"]++
			s := w.store.snapshot("")
			s.Present, s.Inventories = w.present, w.inventories(s.Current)
			known := slices.ContainsFunc(s.Degraded.Findings, func(f record.Finding) bool {
				return f.Server == h.lrn && f.Component == name && f.Ill
			})
			if state := s.Condition(w.now, true).State; !known || state == decide.UpToDate {
				w.violate("%s of server %d has been ill for %s: the fleet is %s, known: %t", name, h.lrn, w.now.Sub(m.seenSince), state, known)
			}
		}
	}
}

// checkTold checks that an ill component is reported once. It may be reported again after it was well, after
// another update, or after its worker was reported gone.
func (w *world) checkTold(now record.Degraded) {
	before, _ := w.store.values[keys.Degraded].(record.Degraded)
	isTold := func(d record.Degraded, f record.Finding) bool {
		return slices.ContainsFunc(d.Findings, func(o record.Finding) bool { return o.Same(f) && !o.Untold })
	}
	for _, f := range now.Findings {
		h := w.server(f.Server)
		if h == nil {
			continue
		}
		if f.Component == "" {
			for _, m := range h.members {
				m.told = false
			}
			continue
		}
		m := h.members[f.Component]
		if !strings.Contains(f.What, "has died") || !isTold(now, f) || isTold(before, f) || !m.ill {
			continue
		}
		w.faults["ill reported"]++
		if m.told && w.canBeSeen(h) {
			w.violate("that %s of server %d is ill is reported again", f.Component, f.Server)
		}
		m.told = true
	}
}

// forgetTold forgets the reports when a new request begins, since there are no inventories for it yet.
func (w *world) forgetTold() {
	for _, h := range w.servers {
		for _, m := range h.members {
			m.told = false
		}
	}
}

func (w *world) server(lrn int) *host {
	i := slices.IndexFunc(w.servers, func(h *host) bool { return h.lrn == lrn })
	if i < 0 {
		return nil
	}
	return w.servers[i]
}

// breakSource makes the source of releases unavailable for a while.
func (w *world) breakSource(*host) {
	if w.sourceDown.After(w.now) {
		return
	}
	w.faults["source of releases away"]++
	w.sourceDown = w.now.Add(w.between(time.Second, 3*time.Minute))
	w.logf("no releases until %.2f", w.sourceDown.Sub(simStart()).Seconds())
}

// lookForReleases is one check for releases by the leader.
func (w *world) lookForReleases() {
	defer w.after(w.between(simCheck/2, simCheck), w.lookForReleases)
	l := w.leader
	if l == nil || l.cut || l.hung.After(w.now) {
		w.lookedBy = nil
		return
	}
	look := decide.Look{At: w.machineTime(l), MaxAge: simMaxCheckAge}
	if w.sourceDown.After(w.now) {
		look.Failure = "503"
	}
	w.commit(decide.NoteLook(get[record.CheckFailure](w.store, keys.CheckFailure), look))
	w.checkOutage(l, look)
}

// checkOutage checks that an outage is reported if it has lasted too long according to one leader's clock,
// and that the fleet then no longer counts as up to date.
func (w *world) checkOutage(l *host, look decide.Look) {
	f := get[record.CheckFailure](w.store, keys.CheckFailure)
	switch {
	case look.Failure == "":
		w.lookedBy = nil
		if f != nil || w.outageTold {
			w.violate("an outage is over, and not forgotten: %+v, told: %t", f, w.outageTold)
		}
		return
	case w.lookedBy != l || w.lookedSkew != l.skew:
		w.lookedBy, w.lookedSkew, w.lookedSince = l, l.skew, w.now
	}
	if w.now.Sub(w.lookedSince) < simMaxCheckAge+3*simCheck {
		return
	}
	w.faults["outage for long"]++
	s := w.store.snapshot("")
	s.Present, s.Inventories = w.present, w.inventories(s.Current)
	idle := s.Current != nil && s.Current.Succeeded() && s.Config.Env != record.EnvNone
	if state := s.Condition(w.now, true).State; !w.outageTold || idle && state == decide.UpToDate {
		w.violate("no look has succeeded for %s: the fleet is %s, told: %t", w.now.Sub(w.lookedSince), state, w.outageTold)
	}
}

// checkOutageAlert checks that an outage is reported once, and its end once.
func (w *world) checkOutageAlert(a record.Alert) {
	began := strings.HasPrefix(a.Message, "all checks for releases have failed")
	if began == w.outageTold {
		w.violate("%q is reported, told before: %t", a.Message, w.outageTold)
	}
	w.outageTold = began
	w.faults["outage reported"]++
}

// mutate changes a commit so that it breaks one of the promises.
func (w *world) mutate(changes []updater.Change) []updater.Change {
	changes = slices.Clone(changes)
	for i, c := range changes {
		switch v := c.Value.(type) {
		case record.CheckFailure:
			if w.mutation == forgetsTelling {
				v.Told = false
				changes[i].Value = v
			}
		case record.Degraded:
			if w.mutation == reasonsAreNews {
				v.Findings = slices.Clone(v.Findings)
				for j := range v.Findings {
					v.Findings[j].Ill = false
				}
				changes[i].Value = v
			}
		}
	}
	return changes
}

// mutateSnapshot changes a snapshot so that the leader breaks one of the promises.
func (w *world) mutateSnapshot(s *decide.Snapshot) {
	if w.mutation == awayIsOver {
		s.Degraded.Findings = slices.DeleteFunc(slices.Clone(s.Degraded.Findings), func(f record.Finding) bool {
			_, here := s.Present[f.Server]
			return !here && f.Component != ""
		})
	}
}

// TestSchedulesThatBreakPromises runs fleets, each of which breaks one promise. At least one schedule must
// show the fault.
func TestSchedulesThatBreakPromises(t *testing.T) {
	manifest := simManifest(t)
	n := uint64(1000)
	if need.LongRun() {
		n = 10_000
	}
	for mutation, want := range map[string]string{
		seesNothing:    "has been ill for",
		reasonsAreNews: "is reported again",
		awayIsOver:     "is reported again",
		forgetsTelling: "is reported, told before",
	} {
		t.Run(mutation, func(t *testing.T) {
			for seed := range n {
				w := newWorld(seed+1, manifest, false)
				w.mutation = mutation
				w.mischiefOnly()
				if len(w.violations) > 0 && strings.Contains(w.violations[0], want) {
					t.Logf("seed %d: %s", seed+1, w.violations[0])
					return
				}
			}
			t.Errorf("in %d schedules nothing shows that %s", n, mutation)
		})
	}
}
