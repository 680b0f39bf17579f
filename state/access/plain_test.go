package access

import (
	"errors"
	"strings"
	"testing"
)

func TestIsPlain(t *testing.T) {
	cases := map[string]struct {
		value  string
		record bool
		want   bool
	}{
		"members of their own":             {`{"owner":{"unit":"a/0"},"label":"x"}`, true, true},
		"a member twice":                   {`{"owner":1,"owner":2}`, false, false},
		"a member in another case":         {`{"owner":{"unit":"a/0"},"Owner":{"unit":""}}`, true, false},
		"a member in a foreign case":       {`{"kept":1,"\u212aept":2}`, true, false},
		"settings that differ in case":     {`{"host":"a","Host":"b"}`, false, true},
		"data of a record in another case": {`{"results":{"a":1,"A":2}}`, true, true},
		"a member twice, below":            {`{"owner":{"service":"x","service":""}}`, true, false},
		"a member twice, in a list":        {`[{"a":1},{"a":1,"a":2}]`, false, false},
		"a number":                         {`7`, true, true},
		"no JSON, which no reader takes":   {`{"a":`, true, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isPlain([]byte(c.value), c.record); got != c.want {
				t.Errorf("isPlain(%s, %t) is %t", c.value, c.record, got)
			}
		})
	}
}

// TestPrefixesOfNames checks that an agent cannot watch a prefix that is the beginning of a name.
func TestPrefixesOfNames(t *testing.T) {
	for _, prefix := range []string{"secrets/o", "machines/1", "units/wordpress/0", "services/wordpress", ""} {
		err := MayWatchPrefix(Agent("1"), NewPlacement(newWorld()), prefix)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("a watch of the prefix %q: %v", prefix, err)
		}
	}

	if err := MayWatchPrefix(Agent("1"), NewPlacement(newWorld()), "machines/1/"); err != nil {
		t.Error(err)
	}
}

// TestRemovedMachine checks that a machine which goes on after its removal writes nothing.
func TestRemovedMachine(t *testing.T) {
	w := newWorld()
	for key := range w {
		r, _ := find(key)
		gone := w.with(world{"machines/1": "", "units/wordpress/0": "", "units/logging/0": "", "units/blog/0": ""})
		for prefix := range gone {
			if strings.HasPrefix(prefix, "machines/1/") {
				delete(gone, prefix)
			}
		}
		for _, op := range []Op{Put, Lease} {
			if err := ask1(gone, op, key, gone[key], usual(key, w[key])); err == nil {
				t.Errorf("%s of %s (%s) is allowed", op, key, r.pattern)
			}
		}
	}
}

// TestContentsLeftBehind checks that nobody can take over the contents that a secret left behind by making a
// secret with its id.
func TestContentsLeftBehind(t *testing.T) {
	w := newWorld()
	own := []byte(w["secrets/own"])
	left := w.with(world{"secrets/own": ""})
	if err := May(Agent("1"), NewPlacement(left), Put, "secrets/own", nil, own); !errors.Is(err, ErrRefused) {
		t.Errorf("a secret over the contents of another one: %v", err)
	}
}

// TestLogLosesItsOldestBatch has a log of as many batches as there may be grow: the oldest goes, and no other.
func TestLogLosesItsOldestBatch(t *testing.T) {
	w := newWorld().with(world{"logs/machine-1": `{"batch":64}`, "log/machine-1/0000000001": `{}`, "log/machine-1/0000000002": `{}`})
	for key, allowed := range map[string]bool{"log/machine-1/0000000001": true, "log/machine-1/0000000002": false} {
		err := MayCommit(Agent("1"), NewPlacement(w), []Write{
			{Key: "logs/machine-1", Value: []byte(`{"batch":65}`)}, {Key: "log/machine-1/0000000065", Value: []byte(`{}`)}, {Key: key, Delete: true},
		})
		if (err == nil) != allowed {
			t.Errorf("%s removed: %v", key, err)
		}
	}
}
