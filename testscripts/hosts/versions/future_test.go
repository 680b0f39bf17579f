package versions

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// These are the member that a newer binary has stored in each record, and the setting that it has stored.
const (
	futureMember  = `"x-future":{"list":[1,{"a":null}]}`
	futureSetting = "future-setting"
	// futureOfProvider is a setting of the provider's own. Today's binary checks settings only when they are
	// set. An older binary refuses to work with this one.
	futureOfProvider = "local.future-setting"
)

func formerIgnoresSettings() bool { return FormerHas("multicall/providers/settings_test.go") }

// TestFuture simulates the return of an environment from a newer binary, which has stored members and a
// setting that neither this binary nor the former one knows. Both must work with them, and all of them must
// still exist when the environment switches to the newer binary again.
//
// The test checks all of this for this binary. For the former binary it does so once that binary has package
// jsonfile, the last part of the implementation. An older one drops the members of records that it writes,
// and refuses set-environment. Then only the setting and the members of records that it never writes must
// exist at the end.
func TestFuture(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	former, current := Former(t), Current(t)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		goThroughFuture(t, former, current, "")
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		etcdtest.Need(t)
		goThroughFuture(t, former, current, etcdtest.For(t, etcdtest.Options{}).URL("/future"))
	})
}

func goThroughFuture(t *testing.T, former, current, url string) {
	formerKeeps := FormerHas("state/jsonfile/jsonfile.go")
	w := newWorld(t, current, url)
	w.deploy("near", 0)
	w.deploy("far", 0)
	w.juju(current, "add-relation", "far:client", "near:server")
	w.eventually("the units have met", func() string {
		if w.runs("near/0") < 5 || w.runs("far/0") < 5 {
			return "there are hooks to come"
		}
		return ""
	})
	w.settle()

	had := w.addFuture()
	w.operate(current, true)
	w.keepsFuture(had, func(string) bool { return true })

	w.juju(former, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
	w.current = former
	w.operate(former, formerKeeps)
	w.juju(current, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
	w.current = current
	w.operate(current, true)
	w.keepsFuture(had, func(key string) bool {
		return formerKeeps || strings.HasPrefix(key, keys.Charms) || strings.HasPrefix(key, keys.BelowService("near")+"relations/")
	})

	// An operator must be able to remove the setting.
	w.juju(current, "set-environment", futureSetting+"=")
	w.view(func(v *state.View) error {
		e, err := v.Environment()
		if len(e.UnknownSettings()) != 0 {
			t.Errorf("left: %v", e.Config)
		}
		return err
	})
}

// operate runs an operator's commands, so that they and the hooks that follow write most records. knows is
// false for a binary that refuses to set anything beside an unknown setting.
func (w *world) operate(binary string, knows bool) {
	w.t.Helper()
	for range 2 {
		w.change(binary, binary)
		w.settle()
	}
	w.juju(binary, "unexpose", "near")
	w.juju(binary, "expose", "near")
	w.juju(binary, "set-constraints", "--service", "near", "cpu-cores=1")
	for _, interval := range []string{"1h", "0"} {
		out, err := w.command(binary, "set-environment", "update-status-interval="+interval).CombinedOutput()
		if (err == nil) != knows {
			w.t.Errorf("set-environment: %v\n%s", err, out)
		}
	}
}

// addFuture stores the member and the setting as a newer binary would, and returns the keys of the records
// with the member. It leaves out keys under leases, which only their sessions write.
func (w *world) addFuture() (had []string) {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), w.state())
	check(w.t, err)
	defer s.Close()
	var all []keyspace.KeyValue
	check(w.t, s.View(w.t.Context(), func(v *state.View) (err error) {
		all, err = v.Keys().List("")
		return err
	}))
	for _, kv := range all {
		leased := strings.HasPrefix(kv.Key, keys.Presences) || strings.HasPrefix(kv.Key, keys.Leaders)
		if leased || strings.HasPrefix(kv.Key, keyspace.BlobsPrefix) || !bytes.HasPrefix(kv.Value, []byte("{")) {
			continue
		}
		check(w.t, s.Update(w.t.Context(), func(tx *state.Tx) error { return addFuture(tx, kv.Key) }))
		had = append(had, kv.Key)
	}

	path := filepath.Join(w.env(0), "environment.yaml")
	record, err := os.ReadFile(path)
	check(w.t, err)
	check(w.t, os.WriteFile(path, append(record, "x-future: kept\n"...), 0o600))
	return had
}

func addFuture(tx *state.Tx, key string) error {
	value, there, err := tx.Keys().Get(key)
	if err != nil || !there {
		return err
	}
	next := `{` + futureMember
	if known := strings.TrimPrefix(string(value), "{"); known != "}" {
		next += "," + known
	} else {
		next += known
	}
	if key == keys.Environment && formerIgnoresSettings() {
		next = strings.Replace(next, `"config":{`, `"config":{"`+futureOfProvider+`":"on",`, 1)
	}
	if key == keys.Environment {
		next = strings.Replace(next, `"config":{`, `"config":{"`+futureSetting+`":"on",`, 1)
	}
	return tx.Keys().Put(key, json.RawMessage(next))
}

// keepsFuture checks that the setting still exists. It checks that each of the wanted records still has the
// member, unless the record was removed or replaced.
func (w *world) keepsFuture(had []string, wanted func(key string) bool) {
	w.t.Helper()
	n := 0
	w.view(func(v *state.View) error {
		e, err := v.Environment()
		if err != nil {
			return err
		}
		if e.Config[futureSetting] != "on" {
			w.t.Errorf("the setting is gone: %v", e.Config)
		}
		if formerIgnoresSettings() && e.Config[futureOfProvider] != "on" {
			w.t.Errorf("the provider's setting is gone: %v", e.Config)
		}
		for _, key := range had {
			value, there, err := v.Keys().Get(key)
			if err != nil {
				return err
			}
			if !there || statetest.IsReplaced(key) || !wanted(key) {
				continue
			}
			n++
			if !bytes.Contains(value, []byte(futureMember)) {
				w.t.Errorf("%s has lost it: %s", key, value)
			}
		}
		return nil
	})
	if n < 2 {
		w.t.Errorf("only %d records were looked at", n)
	}
	record, err := os.ReadFile(filepath.Join(w.env(0), "environment.yaml"))
	check(w.t, err)
	if wanted("environment.yaml") && !bytes.Contains(record, []byte("x-future: kept\n")) {
		w.t.Errorf("environment.yaml has lost it:\n%s", record)
	}
}
