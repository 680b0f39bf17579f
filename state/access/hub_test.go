package access

import (
	"fmt"
	"testing"
)

// TestHubFitsOneTransaction checks the conditions of a hub's hook that writes in 250 relations in one commit.
// It may need only its own conditions and one for its unit's record, since a transaction has at most 512.
func TestHubFitsOneTransaction(t *testing.T) {
	w := newWorld()
	var commit []Write
	for n := range 250 {
		id := 100 + n
		w[fmt.Sprintf("relations/%d", id)] = w["relations/0"]
		member, settings := fmt.Sprintf("relations/%d/members/wordpress/0", id), fmt.Sprintf("relations/%d/settings/wordpress/0", id)
		w[member], w[settings] = `{"version":1}`, `{"version":1}`
		commit = append(commit, Write{Key: member, Value: []byte(`{"version":2}`)}, Write{Key: settings, Value: []byte(`{"version":2}`)})
	}

	p := NewPlacement(w)
	if err := MayCommit(Agent("1"), p, commit); err != nil {
		t.Fatal(err)
	}
	keys, prefixes := p.Used()
	if want := len(commit) + 1; len(keys) != want || len(prefixes) != 0 {
		t.Errorf("it depends on %d keys and %q, want %d keys", len(keys), prefixes, want)
	}
}

// TestPlacementErrors checks that nothing is allowed if a placement cannot be read.
func TestPlacementErrors(t *testing.T) {
	p := NewPlacement(broken{})
	for _, op := range Ops() {
		for range 2 { // the second call must have the same result
			if err := May(Agent("1"), p, op, "units/wordpress/0", []byte(`{}`), []byte(`{}`)); err == nil {
				t.Errorf("%s is allowed", op)
			}
		}
	}
	if err := May(Identity{}, NewPlacement(newWorld()), Get, "format", nil, nil); err == nil {
		t.Error("nobody is allowed something")
	}
	if err := May(Operator(), p, Put, "anything", nil, []byte(`x`)); err != nil {
		t.Errorf("operators: %v", err)
	}
}

type broken struct{}

func (broken) Get(string) ([]byte, error)             { return nil, fmt.Errorf("broken") }
func (broken) List(string) (map[string][]byte, error) { return nil, fmt.Errorf("broken") }
