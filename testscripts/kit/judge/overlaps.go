package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Span is one hook's run with its times, from any host.
type Span struct {
	Event               // the line of its beginning
	Over  bool          // whether it has recorded its end
	Exit  int           // its exit code, if it has recorded its end
	Lasts time.Duration // the time until its last recorded line
}

func (s Span) String() string {
	return fmt.Sprintf("%s (process %d of %s:%s)", s.Hook, s.PID, s.Host, s.Folder)
}

// Spans returns a unit's runs in the order in which they began. The lines can come from several records
// of that unit if their hosts share one clock.
func Spans(events []Event) (all []Span) {
	place := map[process]int{}
	for _, e := range Merge(events) {
		switch i, begun := place[e.process()]; {
		case e.Event == Begin:
			place[e.process()] = len(all)
			all = append(all, Span{Event: e})
		case begun:
			all[i].Lasts = time.Duration(e.At-all[i].At) * time.Microsecond
			if e.Event == Ended {
				all[i].Over, all[i].Exit = true, e.Exit
			}
		}
	}
	return all
}

// Merge sorts the lines of several records by their times.
func Merge(events []Event) []Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// Overlap is two runs of a unit that ran at the same time.
type Overlap struct {
	First, Second Span
	Lasts         time.Duration
}

func (o Overlap) String() string {
	return fmt.Sprintf("%v began beside %v, for %v", o.Second, o.First, o.Lasts)
}

// Overlaps returns all pairs of a unit's runs that ran at the same time.
func Overlaps(events []Event) (all []Overlap) {
	spans := Spans(events)
	for i, first := range spans {
		for _, second := range spans[i+1:] {
			rest := first.Lasts - time.Duration(second.At-first.At)*time.Microsecond
			if rest > 0 {
				all = append(all, Overlap{first, second, min(rest, second.Lasts)})
			}
		}
	}
	return all
}
