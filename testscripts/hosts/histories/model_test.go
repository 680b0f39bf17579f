package histories

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestModel checks small histories. The checker must accept some of them and refuse the others.
func TestModel(t *testing.T) {
	put := operation{Kind: opPut, To: 1, N: 7}
	view := operation{Kind: opView}
	hold := func(session string) operation { return operation{Kind: opHold, Session: session} }
	done := outcome{Known: true}
	seven := outcome{Known: true, World: world{Registers: [registers]int{0, 7}}}
	held := outcome{Known: true, World: world{Holders: [slots]string{"a"}}}

	for _, tc := range []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"what was acknowledged is read", []porcupine.Operation{
			{Input: put, Output: done, Call: 1, Return: 2}, {Input: view, Output: seven, Call: 3, Return: 4},
		}, true},
		{"what was acknowledged is not read", []porcupine.Operation{
			{Input: put, Output: done, Call: 1, Return: 2}, {Input: view, Output: done, Call: 3, Return: 4},
		}, false},
		{"a killed process wrote late", []porcupine.Operation{
			{Input: put, Output: outcome{}, Call: 1, Return: math.MaxInt64},
			{ClientId: 1, Input: view, Output: done, Call: 3, Return: 4}, {ClientId: 1, Input: view, Output: seven, Call: 5, Return: 6},
		}, true},
		{"a write comes and goes", []porcupine.Operation{
			{Input: put, Output: outcome{}, Call: 1, Return: math.MaxInt64},
			{ClientId: 1, Input: view, Output: seven, Call: 3, Return: 4}, {ClientId: 1, Input: view, Output: done, Call: 5, Return: 6},
		}, false},
		{"a slot is refused while its holder lives", []porcupine.Operation{
			{Input: hold("a"), Output: done, Call: 1, Return: 2}, {ClientId: 1, Input: hold("b"), Output: held, Call: 3, Return: 4},
		}, true},
		{"a slot is given twice", []porcupine.Operation{
			{Input: hold("a"), Output: done, Call: 1, Return: 2}, {ClientId: 1, Input: hold("b"), Output: done, Call: 3, Return: 4},
		}, false},
		{"a slot is given again after its session has ended", []porcupine.Operation{
			{Input: hold("a"), Output: done, Call: 1, Return: 2}, {ClientId: 2, Input: operation{Kind: opEnd, Session: "a"}, Output: done, Call: 3, Return: 9},
			{ClientId: 1, Input: hold("b"), Output: done, Call: 4, Return: 5},
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(model(), tc.history); got != tc.want {
				t.Errorf("linearizable: %t, want %t", got, tc.want)
			}
		})
	}
}
