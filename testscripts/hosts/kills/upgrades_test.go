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

// TestUpgrades upgrades ten units several times while their agents, and their gateway, are killed at random
// moments.
func TestUpgrades(t *testing.T) {
	need.Long(t)
	for _, c := range []struct {
		over     string
		upgrades int
	}{
		{overSQLite, 5},
		{overGateway, 3},
	} {
		t.Run(c.over, func(t *testing.T) {
			t.Parallel()
			upgradeKilled(t, c.over, c.upgrades)
		})
	}
}

// upgradeKilled upgrades the units the given number of times. All units must end on the last revision, and
// each must have run every upgrade-charm.
func upgradeKilled(t *testing.T, over string, upgrades int) {
	const units, kills = 10, 8 // in each upgrade
	f := &fleet{world: newWorld(t, over), dice: dice(t)}
	f.alone()
	f.Juju("deploy", f.charm, "app", "-n", fmt.Sprint(units))
	f.eventually("all have started", func() string { return f.behind(0) })
	for n := 1; n <= upgrades; n++ {
		check(t, os.WriteFile(filepath.Join(f.charm, "turn"), []byte(fmt.Sprint(n)), 0o644))
		f.Juju("upgrade-charm", "app")
		for range kills {
			f.sleep(700 * time.Millisecond)
			f.strike()
		}
		f.eventually("all have upgraded", func() string {
			f.Try("upgrade-charm", "app") // marks the units again that were in error during the first attempt
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

// alone removes the peer relation from the charm, because ten units would spend most of their time on hooks
// of that relation.
func (f *fleet) alone() {
	metadata := filepath.Join(f.charm, "metadata.yaml")
	data, err := os.ReadFile(metadata)
	check(f.t, err)
	text, _, _ := strings.Cut(string(data), "peers:")
	check(f.t, os.WriteFile(metadata, []byte(text), 0o644))
}

// behind returns the units that have not settled after the given number of upgrades.
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
