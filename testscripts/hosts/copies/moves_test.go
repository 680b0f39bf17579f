package copies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/judge"
)

// move moves a machine to a different host while a hook runs.
type move struct {
	name     string
	from, to int
	stubborn bool // the hook ignores SIGTERM
	cut      bool // the first host cannot reach the store
}

// TestMoves moves the machine from host to host. The new host cannot wait for the end of a hook on the old
// host, so the test prints the time for which two hooks overlapped.
func TestMoves(t *testing.T) {
	p := newPair(t)
	p.unpack(other{host: 1, folder: env, make: "tar -C " + env + " -c ."})
	halt := p.drive()
	for _, m := range []move{
		{name: "a hook that ends when it is told to", from: 0, to: 1},
		{name: "a hook that does not end when it is told to", from: 1, to: 0, stubborn: true},
		{name: "a hook that ends when it is told to, once more", from: 0, to: 1},
		{name: "a host that cannot reach the store", from: 1, to: 0, cut: true},
	} {
		p.move(m)
	}
	halt()
	p.order(1, 2)
	p.settle()
}

// move carries out a move. The first agent must end its hook, log the reason and exit. The second agent must
// run the hook again.
func (p *pair) move(m move) {
	p.t.Helper()
	p.order(20, 30)
	p.awaitHooks(m.from, 1)
	if m.stubborn {
		p.write(m.from, orders+"/stubborn", "")
	}
	p.order(300, 300)
	hook := p.awaitLong(m.from)
	p.order(20, 30)
	if m.cut {
		check(p.t, p.hosts[m.from].Link(false))
	}
	mark := p.on(m.from, "wc -c <"+env+"/machines/0/agent.log")
	assigned := time.Now()
	p.on(m.to, "juju start --moved")
	p.awaitHooks(m.to, 1)
	if m.cut {
		check(p.t, p.hosts[m.from].Link(true))
	}
	p.eventually("the first has ended", func() string {
		out := p.on(m.from, "pgrep -a -f '[m]achine-agent --machine 0' || true")
		return out
	})
	p.on(m.from, "rm -f "+orders+"/stubborn")
	p.checkLog(m, p.on(m.from, "tail -c +"+mark+" "+env+"/machines/0/agent.log"))
	p.awaitHooks(m.to, 1)
	p.tell(m, hook, assigned)
}

// checkLog checks that the first agent's log contains the reason why the agent has ended.
func (p *pair) checkLog(m move, log string) {
	p.t.Helper()
	for _, want := range []string{`msg="another agent runs the machine: this agent ends, with its running hooks"`, "the claim was lost: it was taken by"} {
		if !strings.Contains(log, want) {
			p.t.Errorf("%s: the first agent's log does not say %q:\n%s", m.name, want, log)
		}
	}
}

// tell prints and checks the end of the running hook. A hook that obeys SIGTERM must have received it, and a
// hook that ignores it must have been killed. Neither counts as successful.
func (p *pair) tell(m move, hook judge.Span, assigned time.Time) {
	p.t.Helper()
	var first judge.Span
	for _, s := range judge.Spans(p.events(m.from)) {
		if s.Client == hook.Client {
			first = s
		}
	}
	var second judge.Span
	for _, s := range judge.Spans(p.events(m.to)) {
		if s.At > hook.At {
			second = s
			break
		}
	}
	after := func(at int64) time.Duration { return time.UnixMicro(at).Sub(assigned).Round(time.Millisecond) }
	fmt.Printf("copies: moved, %s: since the claim was asked for, the first hook went on for %v (ended %v, exit %d), and the second began after %v\n",
		m.name, after(first.At+first.Lasts.Microseconds()), first.Over, first.Exit, after(second.At))
	if !m.stubborn && !m.cut && (!first.Over || first.Exit != 143) {
		p.t.Errorf("%s: the first hook was not told to end: %v, exit %d", m.name, first.Over, first.Exit)
	}
	if m.stubborn && first.Over {
		p.t.Errorf("%s: the first hook came to its end, with exit %d", m.name, first.Exit)
	}
	if second.Hook != hook.Hook || second.Client == hook.Client {
		p.t.Errorf("%s: %v was not run again, but %v", m.name, hook, second)
	}
}
