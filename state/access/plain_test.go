package access

import (
	"encoding/json"
	"errors"
	"fmt"
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
			if got := hasDistinctMembers([]byte(c.value), c.record); got != c.want {
				t.Errorf("hasDistinctMembers(%s, %t) is %t", c.value, c.record, got)
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

// TestRemovedMachine checks that a machine that still runs after its removal cannot write.
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

// TestContentsLeftBehind checks that an agent cannot read the contents of a removed secret by creating a
// secret with the same id.
func TestContentsLeftBehind(t *testing.T) {
	w := newWorld()
	own := []byte(w["secrets/own"])
	left := w.with(world{"secrets/own": ""})
	if err := May(Agent("1"), NewPlacement(left), Put, "secrets/own", nil, own); !errors.Is(err, ErrRefused) {
		t.Errorf("a secret over the contents of another one: %v", err)
	}
}

// TestLogLosesItsOldestBatch checks that a full log can grow only if its oldest batch is removed, and no
// other batch.
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

// TestStorageListsAreBounded checks that a full list of storage cannot grow. If an older binary has written a
// longer list, the list can still become shorter.
func TestStorageListsAreBounded(t *testing.T) {
	list := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("data/%d", 100+i))
		}
		return ids
	}
	encode := func(doc any) string {
		value, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}

	for name, c := range map[string]struct {
		before, after int
		allowed       bool
	}{
		"one more":            {maxUnitStorages - 1, maxUnitStorages, true},
		"one too many":        {maxUnitStorages, maxUnitStorages + 1, false},
		"one less of a crowd": {maxUnitStorages + 9, maxUnitStorages + 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld().with(world{
				"counters/storage": `500`, "units/wordpress/0/storage": encode(list(c.before)), "machines/1/storage": encode(machineStorage{list(c.before)}),
			})
			for _, id := range list(c.before) {
				w["storage/"+id] = `{"machine":"1","unit":"wordpress/0","life":"alive","made":true,"state":"attached"}`
			}
			commit := []Write{
				{Key: "units/wordpress/0/storage", Value: []byte(encode(list(c.after)))},
				{Key: "machines/1/storage", Value: []byte(encode(machineStorage{list(max(c.before, c.after))}))},
			}
			if c.after < c.before {
				id := list(c.before)[c.after]
				commit = append(commit, Write{Key: "storage/" + id, Value: []byte(strings.Replace(w["storage/"+id], `"unit":"wordpress/0",`, ``, 1))})
			} else {
				w["counters/storage"] = fmt.Sprint(100 + c.before)
				commit = append(commit, Write{Key: "counters/storage", Value: []byte(fmt.Sprint(100 + c.after))}, Write{
					Key: "storage/" + list(c.after)[c.before], Value: []byte(`{"machine":"1","unit":"wordpress/0","life":"alive","state":"pending"}`),
				})
			}

			err := MayCommit(Agent("1"), NewPlacement(w), commit)
			if (err == nil) != c.allowed || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestReaderPrunesRevisionsOfAnyZone checks that a reader can prune a secret whose owner writes times in
// another time zone.
func TestReaderPrunesRevisionsOfAnyZone(t *testing.T) {
	w := newWorld()
	w["secrets/granted"] = strings.ReplaceAll(w["secrets/granted"], `00:00:00Z"}`, `02:00:00+02:00"}`)
	read := strings.NewReplacer(`"wordpress/0":{"revision":1}`, `"wordpress/0":{"revision":2}`,
		`"1":{"created":"2026-01-01T02:00:00+02:00"},`, ``).Replace(w["secrets/granted"])
	err := MayCommit(Agent("1"), NewPlacement(w), []Write{
		{Key: "secrets/granted", Value: []byte(read)}, {Key: "secret-contents/granted/1", Delete: true},
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSecretGrantsAreBounded checks that the number of a secret's grants is limited, and that existing grants
// remain.
func TestSecretGrantsAreBounded(t *testing.T) {
	w := newWorld()
	with := func(n int, more string) string {
		grants := strings.Repeat(`{"relation":0,"service":"mysql"},`, n) + `{"relation":0,"service":"mysql"}`
		return strings.Replace(w["secrets/own"], `"latest"`, `"grants":[`+grants+`],`+more+`"latest"`, 1)
	}
	old := with(maxGrants+9, "")
	for name, c := range map[string]struct {
		old, new string
		allowed  bool
	}{
		"as many as there may be": {w["secrets/own"], with(maxGrants-1, ""), true},
		"one more":                {w["secrets/own"], with(maxGrants, ""), false},
		"many that it has":        {old, with(maxGrants+9, `"label":"x",`), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := May(Agent("1"), NewPlacement(w.with(world{"secrets/own": c.old})), Put, "secrets/own", []byte(c.old), []byte(c.new))
			if (err == nil) != c.allowed || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestStateBeforeInstallation checks the states to which a unit may change after a failed hook: back to the
// state before its installation if it was not installed, and otherwise not.
func TestStateBeforeInstallation(t *testing.T) {
	for old, allowed := range map[string]bool{
		`{"state":"storage-attached-error","charm":"local:trusty/wordpress-3","uninstalled":true}`: true,
		`{"state":"started","charm":"local:trusty/wordpress-3"}`:                                   false,
	} {
		err := May(Agent("1"), NewPlacement(newWorld()), Put, "uniters/wordpress/0/workflow", []byte(old), []byte(`{"charm":"local:trusty/wordpress-3"}`))
		if (err == nil) != allowed {
			t.Errorf("%s: %v", old, err)
		}
	}
}
