package uniter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlots(t *testing.T) {
	s := NewSlots(1)
	turns := []turn{s.ask(), s.ask(), s.ask(), s.ask()}
	for _, step := range []struct {
		name string
		do   func()
		want []bool // who has been granted one
	}{
		{"one slot", func() {}, []bool{true, false, false, false}},
		{"who waits goes", func() { s.giveBack(turns[1]) }, []bool{true, false, false, false}},
		{"two slots", func() { s.Resize(2) }, []bool{true, false, true, false}},
		{"one again", func() { s.Resize(1) }, []bool{true, false, true, false}},
		{"the first ends", func() { s.giveBack(turns[0]) }, []bool{true, false, true, false}},
		{"the next ends", func() { s.giveBack(turns[2]) }, []bool{true, false, true, true}},
	} {
		step.do()
		var got []bool
		for _, turn := range turns {
			got = append(got, turn.granted())
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}
