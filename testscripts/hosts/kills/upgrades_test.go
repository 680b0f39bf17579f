package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/need"
)

// TestUpgrades takes ten units through five upgrades while their agents are killed at random moments.
// All units must end on the last revision, and each must have run every upgrade-charm.
func TestUpgrades(t *testing.T) {
	need.Long(t)
	const units, kills, upgrades = 10, 8, 5 // kills in each upgrade
	f := &fleet{world: newWorld(t), dice: dice(t)}
	f.alone()
	f.Juju("deploy", f.charm, "app", "-n", fmt.Sprint(units))
	f.eventually("all have started", func() string { return f.behind(0) })
	for n := 1; n <= upgrades; n++ {
		check(t, os.WriteFile(filepath.Join(f.charm, "turn"), []byte(fmt.Sprint(n)), 0o644))
		f.Juju("upgrade-charm", "app")
		for range kills {
			f.sleep(700 * time.Millisecond)
			f.kill()
		}
		f.eventually("all have upgraded", func() string {
			f.Try("upgrade-charm", "app") // marks units again that were in error
			return f.behind(n)
		})
	}
	f.settle()
	for unit, events := range f.records() {
		upgraded, ran := judge.Upgraded(events)
		for revision := 2; revision <= 1+upgrades; revision++ {
			if !upgraded[revision] {
				f.wrong = append(f.wrong, fmt.Sprintf("%s has not run upgrade-charm of revision %d (hooks of %v)", unit, revision, ran))
			}
		}
	}
	f.removeAll("app")
	f.judge("upgrades", fmt.Sprintf("%d upgrades, ", upgrades))
}

// alone removes the peer relation from the charm, because ten units would mostly talk to each other.
func (f *fleet) alone() {
	metadata := filepath.Join(f.charm, "metadata.yaml")
	data, err := os.ReadFile(metadata)
	check(f.t, err)
	text, _, _ := strings.Cut(string(data), "peers:")
	check(f.t, os.WriteFile(metadata, []byte(text), 0o644))
}

// behind returns the units that have not settled after that many upgrades.
func (f *fleet) behind(upgrades int) string {
	want := fmt.Sprint("-", 1+upgrades)
	var late []string
	f.view(func(v *state.View) error {
		units, err := v.Units("app")
		for _, u := range units {
			w, err := v.Workflow(u.Name)
			if err != nil {
				return err
			}
			if w.State != "started" || w.UpgradeOwed || w.ConfigOwed || !strings.HasSuffix(w.Charm, want) {
				late = append(late, fmt.Sprintf("%s: %s, %s", u.Name, w.State, w.Charm))
			}
		}
		return err
	})
	return strings.Join(late, "\n")
}
