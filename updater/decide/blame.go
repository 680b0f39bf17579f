package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/updater/record"
)

// Activity returns what the server's worker says that it is doing, or the wait at a
// barrier that follows from the records; ok is false if nothing is known.
func (s Snapshot) Activity(lrn int) (a record.Activity, ok bool) {
	w, answered := s.workerRecord(lrn)
	if !answered || w.Finished {
		return a, false
	}
	if a, ok = s.Activities[lrn]; ok && a.IsOf(w) {
		return a, true
	}
	a = record.Activity{Request: w.Request, Attempt: w.Attempt, Step: w.Step, Since: w.At}
	late := s.serversBehind(w.Step)
	switch {
	case w.HandsOver():
		a.Message = "has installed " + w.Version + " and waits for its worker to begin"
	case w.Step > 0 && len(late) > 0:
		who := "server " + record.ListServers(late)
		if len(late) > maxDescribed {
			who = fmt.Sprint(len(late), " servers")
		}
		a.Kind, a.Servers, a.Message = record.WaitBarrier, late, "waits for "+who+" to come to this step"
	}
	return a, a.Message != ""
}

func (s Snapshot) serversBehind(step int) (late []int) {
	for _, lrn := range s.Current.Servers {
		if w, ok := s.workerRecord(lrn); !ok || !w.Finished && w.Step < step {
			late = append(late, lrn)
		}
	}
	return late
}

// ServersAtFault returns the servers that keep the late ones from going on: a server that
// waits for others is not at fault, but those that it waits for are.
func (s Snapshot) ServersAtFault(late []int) (atFault []int) {
	seen := map[int]bool{}
	var follow func(lrn int)
	follow = func(lrn int) {
		if seen[lrn] {
			return
		}
		seen[lrn] = true
		a, _ := s.Activity(lrn)
		_, absent := s.Absent[lrn]
		switch {
		case absent || a.Kind == "":
			atFault = append(atFault, lrn)
		case a.Kind == record.WaitQuorum: // their members are, whatever their workers do
			atFault = append(atFault, a.Servers...)
		default:
			for _, other := range a.Servers {
				follow(other)
			}
		}
	}
	for _, lrn := range late {
		follow(lrn)
	}
	if len(atFault) == 0 { // they wait for nobody in particular, or for one another
		return late
	}
	return record.SortServers(atFault)
}

// maxDescribed is how many servers a message describes in detail.
const maxDescribed = 5

func (s Snapshot) describeServers(lrns []int) string {
	var words []string
	for i, lrn := range lrns {
		if i == maxDescribed {
			words = append(words, fmt.Sprintf("and %d more", len(lrns)-i))
			break
		}
		words = append(words, s.describeServer(lrn))
	}
	return strings.Join(words, ", ")
}

func (s Snapshot) describeServer(lrn int) string {
	word := fmt.Sprintf("server %d has not answered", lrn)
	w, ok := s.workerRecord(lrn)
	switch a, _ := s.Activity(lrn); {
	case ok && w.Finished:
		word = fmt.Sprintf("server %d is done", lrn)
	case ok:
		word = fmt.Sprintf("server %d is at step %s", lrn, w.StepName)
		if a.Message != "" {
			word += ": " + a.Text()
		}
	}
	if _, absent := s.Absent[lrn]; absent {
		word += " (no worker is alive there)"
	}
	return word
}

func (s Snapshot) describeStall() (atFault []int, why string) {
	late := s.lateServers()
	atFault = s.ServersAtFault(late)
	why = s.describeServers(atFault)
	waiting := slices.DeleteFunc(slices.Clone(late), func(lrn int) bool { return slices.Contains(atFault, lrn) })
	if len(waiting) > 0 {
		why += "; " + s.describeServers(waiting)
	}
	return atFault, why
}

// failedServers returns the servers at fault for the failures of this attempt: not those
// that have only waited for others.
func (s Snapshot) failedServers(now time.Time) (atFault []int, why string) {
	var failed, waited []string
	var late []int
	for _, lrn := range s.Current.Servers {
		w, why := s.workerFailure(lrn, now)
		word := fmt.Sprintf("server %d, step %s: %s", lrn, w.StepName, why)
		switch {
		case why == "":
		case len(w.WaitedFor) > 0:
			waited, late = append(waited, word), append(late, w.WaitedFor...)
		default:
			failed, atFault = append(failed, word), append(atFault, lrn)
		}
	}
	others := slices.DeleteFunc(s.ServersAtFault(record.SortServers(late)), func(lrn int) bool { return slices.Contains(atFault, lrn) })
	for _, lrn := range others {
		failed = append(failed, s.describeServer(lrn))
	}
	return record.SortServers(append(atFault, others...)), strings.Join(append(failed, waited...), "; ")
}
