package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestHealthMemory checks when a component with a problem counts as ill. Each letter is a check, one minute
// after the previous one: w is healthy, d is down, and s is running with a failing health check.
func TestHealthMemory(t *testing.T) {
	for what, tt := range map[string]struct {
		before bool // set if the previous worker has found it ill
		looks  string
		want   string // the result of each check: . is healthy, i is ill, ? is unknown
	}{
		"well":                        {false, "www", "..."},
		"restarted":                   {false, "wdw", "..."},
		"died":                        {false, "wddd", "..ii"},
		"comes and goes":              {false, "wdwdw", "....."},
		"died, and came back":         {false, "wddww", "..i.."},
		"its check fails for a while": {false, "wssw", "...."},
		"its check fails for long":    {false, "wsssss", "....ii"},
		"other reasons in turn":       {false, "wsdsd", "..iii"},
		"never was well":              {false, "ddddd", "???ii"},
		"takes its time at first":     {false, "sssww", "???.."},
		"was ill before":              {true, "dssw", "iii."},
		"was ill before, and is well": {true, "ww", ".."},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &healthMemory{components: map[string]*componentHealth{}}
				if tt.before {
					h.components["a"] = &componentHealth{isIll: true}
				}

				got := ""
				for _, look := range tt.looks {
					var ill error
					if look != 'w' {
						ill = errors.New("it is " + string(look))
					}
					var i record.Inventory
					h.note(&i, release.Component{Name: "a", HealthyWithin: release.Duration(3 * time.Minute)}, ill, look == 's')
					switch {
					case i.Ill["a"] != "":
						got += "i"
					case slices.Contains(i.Unsure, "a"):
						got += "?"
					default:
						got += "."
					}
					time.Sleep(time.Minute)
				}
				if got != tt.want {
					t.Errorf("%s: %s, want %s", tt.looks, got, tt.want)
				}
			})
		})
	}
}

// TestIllInventory checks that a worker records an ill component once, and that its successor continues from
// that record. If only the reason changes, the worker does not write it immediately.
func TestIllInventory(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = plan()
		ended := time.Now().UTC()
		r.Update(func(tx *keyspace.Tx) error {
			request := record.Request{Version: "1.1", Servers: []int{1}, ID: 1, Attempt: 1, StartedAt: ended, AttemptAt: ended, EndedAt: &ended}
			status := record.Status{Version: "1.1", Request: 1, Attempt: 1, Step: 1, Finished: true}
			return errors.Join(tx.Put(keys.Config("survey-interval"), "1s"), tx.Put(keys.BootServer(1), struct{}{}),
				tx.Put(keys.Current, request), tx.Put(keys.Worker(1), status))
		})
		read := func() (i record.Inventory) {
			err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
				found, err := updater.ReadKey[record.Inventory](v, keys.Inventory(1))
				if found != nil {
					i = *found
				}
				return err
			})
			if err != nil {
				r.T.Fatal(err)
			}
			return i
		}
		name := r.manifest.Components[0].Name

		f, dir := &updatertest.Server{}, r.T.TempDir()
		stop := r.worker(1, dir, f, Options{})
		r.Eventually("all is well", func() bool { i := read(); return i.KnowsHealth() && len(i.Ill)+len(i.Unsure) == 0 })
		f.Set(func() { f.IsIll = map[string]error{name: errors.New("process 1 has died")} })
		r.Eventually("it is ill", func() bool { return strings.Contains(read().Ill[name], "process 1") })
		first := read()
		f.Set(func() { f.IsIll = map[string]error{name: errors.New("process 2 has died")} })
		time.Sleep(3 * time.Second)
		if now := read(); !now.At.Equal(first.At) {
			r.T.Errorf("it has written again: %+v", now)
		}

		// The successor has not seen the component well, and must not record that it is.
		if err := stop(); err != nil {
			r.T.Fatal(err)
		}
		next := &updatertest.Server{IsIll: map[string]error{name: errors.New("process 3 has died")}}
		r.worker(1, dir, next, Options{})
		said := map[string]bool{}
		r.Eventually("the next one says that it is ill", func() bool {
			now := read()
			said[fmt.Sprint(len(now.Ill))] = true
			return strings.Contains(now.Ill[name], "process 3")
		})
		if said["0"] {
			r.T.Errorf("meanwhile it was well: %v", slices.Collect(maps.Keys(said)))
		}
		next.Set(func() { next.IsIll = nil })
		r.Eventually("it is well again", func() bool { i := read(); return i.KnowsHealth() && len(i.Ill) == 0 })
	})
}
