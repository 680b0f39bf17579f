package juju

import (
	"bytes"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/state/actions"
)

// TestActionsBar checks that a wait for several actions shows the number of ended actions, and that a wait
// for one action shows nothing.
func TestActionsBar(t *testing.T) {
	for what, tt := range map[string]struct {
		ended []bool
		want  string
	}{
		"one of three": {[]bool{true, false, false}, "actions ended: 1 of 3\n"},
		"none of two":  {[]bool{false, false}, "actions ended: 0 of 2\n"},
		"all":          {[]bool{true, true}, ""},
		"a single one": {[]bool{false}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			var out bytes.Buffer
			clock := time.Unix(0, 0)
			o := &operator{bar: console.NewProgress(&out, func() time.Time {
				clock = clock.Add(time.Hour)
				return clock
			})}

			w := &actionWaiter{o: o}
			for _, ended := range tt.ended {
				a := &awaitedAction{action: actions.Action{Status: actions.Running}}
				if ended {
					a.action.Status = actions.Completed
				}
				w.actions = append(w.actions, a)
			}

			w.showBar()
			w.showBar()
			if got := out.String(); got != tt.want {
				t.Errorf("it shows %q, want %q", got, tt.want)
			}
		})
	}
}
