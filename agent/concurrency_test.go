package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestHookConcurrencyFollowsTheEnvironment(t *testing.T) {
	once(t, func(r *rig) {
		set := func(n string) {
			r.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.HookConcurrency: &n}) })
		}
		body, open := r.gate("install")
		hold := "until " + strings.Replace(body, "|| exit 7", "", 1) + "; do sleep 0.02; done"
		running := filepath.Join(t.TempDir(), "running")
		statetest.AddService(t, r.st, r.recorder(statetest.Meta("app", "provides: {}\n"), hooks(), map[string]string{
			"install": "touch " + running + "-$JUJU_MACHINE_ID-${JUJU_UNIT_NAME#*/}\n" + hold,
		}), 4)
		hooksThatRun := func() int {
			files, err := filepath.Glob(running + "*")
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		set("1")
		r.start()
		r.eventually("one runs", func() bool { return hooksThatRun() == 1 })
		set("3")
		r.eventually("three run", func() bool { return hooksThatRun() >= 3 })
		if n := hooksThatRun(); n != 3 {
			t.Errorf("%d hooks run", n)
		}
		open()
		r.settle()
	})
}
