package pulse

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Minute
		p := New()
		a, b := p.Loop("a"), p.Loop("b")
		for _, step := range []struct {
			name string
			do   func()
			want string
		}{
			{"nothing has turned", func() {}, ""},
			{"at work", a.MarkBusy, ""},
			{"for too long", func() {}, "a"},
			{"another turn", a.MarkBusy, ""},
			{"one rests, one works", func() { a.MarkUnbounded(); b.MarkBusy() }, ""},
			{"the one that works does so for too long", func() {}, "b"},
			{"it ends", b.MarkUnbounded, ""},
			{"rest may last", func() {}, ""},
		} {
			step.do()
			if got := p.HungLoop(limit); got != step.want {
				t.Errorf("%s: %q hangs, want %q", step.name, got, step.want)
			}
			time.Sleep(limit/2 + time.Second)
			if step.name == "at work" || step.name == "one rests, one works" {
				time.Sleep(limit / 2)
			}
		}
	})
}

func TestNilNotesNothing(t *testing.T) {
	var p *Watchdog
	l := p.Loop("a")
	l.MarkBusy()
	l.MarkUnbounded()
}
