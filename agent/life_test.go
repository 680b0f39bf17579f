package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/text"
	"bijou/testscripts/kit/statetest"
)

// pair deploys mysql/0, whose joined hook sets a user, and wordpress/0, whose changed hook confirms the
// received user.
func (r *rig) pair() int {
	r.recordPair(nil)
	return statetest.Relate(r.t, r.st, "wordpress", "mysql").ID
}

func (r *rig) recordPair(bodies map[string]string) {
	all := map[string]string{
		"server-relation-joined": "relation-set user=root password=s3cret",
		"db-relation-changed":    `user=$(relation-get user) && [ -z "$user" ] || relation-set got="$user"`,
	}
	for hook, body := range bodies {
		all[hook] = body
	}
	mysql := statetest.Meta("mysql", "provides:\n  server: mysql\n")
	wordpress := statetest.Meta("wordpress", "requires:\n  db: mysql\n")
	wordpress["config.yaml"] = "options:\n  title: {type: string, default: My Title}\n"
	statetest.AddService(r.t, r.st, r.recorder(mysql, hooks("server"), all), 1)
	statetest.AddService(r.t, r.st, r.recorder(wordpress, hooks("db"), all), 1)
}

func (r *rig) settings(relation int, unit string) map[string]string {
	s := statetest.Read(r.t, r.st, func(v *state.View) (state.Settings, error) { return v.Settings(relation, unit) })
	return s.Values
}

func TestPairFromInstallToStop(t *testing.T) {
	twice(t, func(r *rig) {
		id := r.pair()
		r.start()
		r.awaitNote("mysql/0", "server-relation-changed wordpress/0 [wordpress/0]")
		r.eventually("wordpress answers", func() bool { return r.settings(id, "wordpress/0")["got"] == "root" })
		r.settle()
		r.update(func(tx *state.Tx) error { return tx.DestroyRelation(id) })
		r.awaitNote("mysql/0", "server-relation-broken []")
		r.awaitNote("wordpress/0", "db-relation-broken []")
		r.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyUnit("mysql/0"), tx.DestroyUnit("wordpress/0")) })
		r.eventually("both units are gone", func() bool {
			units := statetest.Read(r.t, r.st, func(v *state.View) ([]state.Unit, error) { return v.Units("") })
			return len(units) == 0
		})
		r.eventually("the log has what changed", func() bool {
			return strings.Contains(r.logs(), `setting changed: "user"=`) && strings.Contains(r.logs(), `setting changed: "password"=`)
		})
		r.end()

		want := strings.Split("install,config-changed,start,db-relation-joined mysql/0 [mysql/0],db-relation-changed mysql/0 [mysql/0]", ",")
		got := r.noted("wordpress/0")
		if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
			r.t.Errorf("wordpress/0: %s", diff)
		}
		want = []string{"db-relation-departed mysql/0 []", "db-relation-broken []", "stop"}
		if diff := cmp.Diff(want, got[max(0, len(got)-3):]); diff != "" {
			r.t.Errorf("wordpress/0 at the end: %s", diff)
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, "*s", "*-[0-9]*")); len(left) > 0 {
			r.t.Errorf("folders are left: %q", left)
		}
		shown := text.HideSecrets(r.logs())
		if !strings.Contains(shown, `mysql/0 INFO server-relation-joined: setting changed: "user"="root" (was unset)`) ||
			!strings.Contains(shown, `"password"=(hidden)`) || strings.Contains(shown, "s3cret") {
			r.t.Errorf("the log does not say what changed:\n%s", shown)
		}
	})
}

func TestPeersMeetEachOther(t *testing.T) {
	once(t, func(r *rig) {
		ring := statetest.Meta("ring", "peers:\n  ring: ring\n")
		statetest.AddService(r.t, r.st, r.recorder(ring, hooks("ring"), map[string]string{
			"ring-relation-joined": "relation-set me=$JUJU_UNIT_NAME",
		}), 3)
		r.start()
		for _, pair := range []string{"0 1", "0 2", "1 0", "1 2", "2 0", "2 1"} {
			a, b, _ := strings.Cut(pair, " ")
			r.eventually(a+" has seen "+b, func() bool {
				return strings.Contains(strings.Join(r.noted("ring/"+a), "\n"), "ring-relation-changed ring/"+b)
			})
		}
		r.settle()
		r.update(func(tx *state.Tx) error { return tx.DestroyUnit("ring/1") })
		r.awaitNote("ring/0", "ring-relation-departed ring/1 [ring/2]")
		r.awaitNote("ring/2", "ring-relation-departed ring/1 [ring/0]")
		r.awaitNote("ring/1", "stop")
		for _, unit := range []string{"ring/0", "ring/2"} {
			joinedFirst(r, unit)
		}
	})
}

// joinedFirst checks that every joined hook is directly followed by its changed hook.
func joinedFirst(r *rig, unit string) {
	notes := r.noted(unit)
	for i, note := range notes {
		words := strings.Fields(note)
		if !strings.HasSuffix(words[0], "-joined") {
			continue
		}
		want := strings.Replace(words[0], "-joined", "-changed", 1) + " " + words[1]
		if i+1 == len(notes) || !strings.HasPrefix(notes[i+1], want) {
			r.t.Errorf("%s: after %q comes %q, want %s", unit, note, notes[min(i+1, len(notes)-1)], want)
		}
	}
}

func TestConfigChangesAndRestarts(t *testing.T) {
	once(t, func(r *rig) {
		r.recordPair(map[string]string{"config-changed": `echo "title=$(config-get title)"`})
		r.start()
		r.settle()
		r.update(func(tx *state.Tx) error {
			_, err := tx.SetConfig("wordpress", map[string]any{"title": "Other"})
			return err
		})
		r.eventually("the hook sees it", func() bool { return strings.Contains(r.logs(), "title=Other") })
		r.settle()
		before := r.noted("wordpress/0")
		r.end()
		r.start()
		r.eventually("config-changed runs again", func() bool { return len(r.noted("wordpress/0")) > len(before) })
		r.settle()
		if diff := cmp.Diff(append(before, "config-changed"), r.noted("wordpress/0")); diff != "" {
			r.t.Error(diff)
		}
	})
}

func TestRelationEndsWhileNoAgentRuns(t *testing.T) {
	once(t, func(r *rig) {
		id := r.pair()
		r.start()
		r.settle()
		r.end()
		r.update(func(tx *state.Tx) error { return tx.DestroyRelation(id) })
		r.start()
		r.awaitNote("wordpress/0", "db-relation-departed mysql/0 []")
		r.awaitNote("wordpress/0", "db-relation-broken []")
		r.eventually("the relation is gone", func() bool {
			relations := statetest.Read(r.t, r.st, func(v *state.View) ([]state.Relation, error) { return v.Relations() })
			return len(relations) == 0
		})
	})
}

func TestFoldersOfGoneUnitsAreSwept(t *testing.T) {
	once(t, func(r *rig) {
		for _, name := range []string{"units/old-3", "units/not a unit", "agents/unit-old-4", "agents/machine-0"} {
			if err := os.MkdirAll(filepath.Join(r.dir, name), 0o755); err != nil {
				r.t.Fatal(err)
			}
		}
		if err := os.Symlink("../agents/unit-old-5", filepath.Join(r.dir, "units/old-5")); err != nil { // left by an interrupted removal
			r.t.Fatal(err)
		}
		r.start()
		r.eventually("the folders are gone", func() bool {
			old, _ := filepath.Glob(filepath.Join(r.dir, "*", "*old-*"))
			return len(old) == 0
		})
		for _, name := range []string{"units/not a unit", "agents/machine-0"} {
			if _, err := os.Stat(filepath.Join(r.dir, name)); err != nil {
				r.t.Errorf("what is no unit's was swept: %v", err)
			}
		}
	})
}
