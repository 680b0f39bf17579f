package judge

import "strings"

// Run is one hook's run: its beginning, its writes and its end. With the event Died it is a hook that was
// running according to the state but never began.
type Run struct {
	Event
	Ended bool
	Exit  int
	Wrote int
	IDs   []int
	// Cut means that it was the last run before everything was killed. Its result may not be recorded.
	Cut bool
	// Redo means that its agent died before its result was recorded. It runs again, no matter what its exit
	// code was.
	Redo bool

	orphan bool // its agent has died, and the hook may continue until the next agent starts
}

// Failed reports whether the run failed or was cut off.
func (r Run) Failed() bool { return !r.Ended || r.Exit != 0 }

// counts reports whether the run's settings were written.
func (r Run) counts() bool { return !r.Failed() && !r.Redo }

// Runs combines the lines of a record into runs. It reports overlapping runs as wrong.
func Runs(events []Event) (all []Run, wrong []string) {
	var p places
	for _, e := range events {
		p.take(e)
	}
	return p.all, p.wrong
}

// process identifies the process that wrote a hook's lines.
type process struct {
	host string
	pid  int
}

func (e Event) process() process { return process{e.Host, e.PID} }

// places assigns lines to their runs.
type places struct {
	all   []Run
	open  map[process]int // place in all
	dead  string          // the client id of the hook that was running when the last agent died
	wrong []string
}

func (p *places) take(e Event) {
	i, here := p.open[e.process()]
	switch {
	case e.Event == Killed:
		p.open = nil // open runs have not ended, which is expected
		if n := len(p.all); n > 0 {
			p.all[n-1].Cut = true
		}
	case e.Event == Died:
		p.died(e)
	case e.Event == Resolved:
		p.all = append(p.all, Run{Event: e, Ended: true})
	case e.Event == Begin:
		p.begin(e)
	case !here:
		p.wrong = append(p.wrong, e.Hook+" went on after its successor had begun")
	case e.Event == Lives: // the hook that must come first
	case e.Event == Wrote:
		p.all[i].Wrote = e.Beat
		for _, id := range strings.Fields(e.IDs) {
			p.all[i].IDs = append(p.all[i].IDs, relationNumber(id))
		}
	default:
		p.all[i].Ended, p.all[i].Exit = true, e.Exit
	}
}

func (p *places) begin(e Event) {
	for _, other := range p.open {
		if !p.all[other].Ended && !p.all[other].orphan {
			p.wrong = append(p.wrong, e.Hook+" began beside "+p.all[other].Hook)
		}
	}
	p.open = map[process]int{e.process(): len(p.all)}
	left := e.Client == p.dead && e.Client != ""
	p.all = append(p.all, Run{Event: e, Redo: left, orphan: left})
}

// died marks the running hooks as orphans of the agent.
func (p *places) died(e Event) {
	for _, i := range p.open {
		p.all[i].orphan = true
	}
	p.dead = e.Client
	for i, r := range p.all {
		if r.Event.Event == Begin && r.Client == e.Client {
			p.all[i].Redo = true
			e.Hook = "" // since the hook has begun
		}
	}
	p.all = append(p.all, Run{Event: e})
}
