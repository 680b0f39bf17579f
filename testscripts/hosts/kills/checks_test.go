package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
)

// settle waits until every unit has run all hooks that are due.
func (w *world) settle() {
	w.t.Helper()
	w.eventually("everything is told", func() string {
		lack, err := judge.MissingFrom(w.t.Context(), w.url(), w.records())
		check(w.t, err)
		return strings.Join(lack, "\n")
	})
}

// judge checks all records against the rules and prints the counts. It fails if any request of an agent was
// refused.
func (w *world) judge(suite, counted string) {
	w.t.Helper()
	records, hooks, again := w.records(), 0, 0
	wrong := append(judge.Leaked(records), w.wrong...)
	for unit, events := range records {
		all, _ := judge.Runs(events)
		for _, r := range all {
			switch {
			case r.Event.Event != judge.Begin:
			case r.Failed(), r.Redo:
				again++
				fallthrough
			default:
				hooks++
			}
		}
		for _, v := range judge.Violations(events) {
			wrong = append(wrong, unit+": "+v)
		}
	}
	if w.over == overGateway {
		counted += fmt.Sprintf("%d kills of the gateway, ", w.gatewayKills)
		for _, refusal := range w.gateway.Refused() {
			wrong = append(wrong, "an agent was refused: "+refusal)
		}
	}
	for _, line := range wrong {
		w.t.Error(line)
	}
	fmt.Printf("kills: %s over %s: %s%d kills, %d units, %d hooks (%d began again), %d violations\n",
		suite, w.over, counted, w.kills, len(records), hooks, again, len(wrong))
}

// damaged returns the units whose data differs from what their hooks left: the last number that they
// wrote, or one more if that hook was killed.
func (w *world) damaged(records map[string][]judge.Event) (all []string) {
	for _, u := range w.units("") {
		data, err := os.ReadFile(w.Unit(u.Name, "beat"))
		kept, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		for _, e := range slices.Backward(records[u.Name]) {
			if e.Event != judge.Wrote {
				continue
			}
			if kept < e.Beat {
				all = append(all, fmt.Sprintf("%s has kept the number %d (%v), and has written %d", u.Name, kept, err, e.Beat))
			}
			break
		}
	}
	return all
}

// removeAll removes all services, and checks that no file and no record is left. It does not check logs,
// which the agent keeps for a while, or the settings of removed relations, which remain until they are swept.
func (w *world) removeAll(services ...string) {
	w.t.Helper()
	w.wrong = append(w.wrong, w.damaged(w.records())...)
	for _, s := range services {
		w.Juju("destroy-service", s)
	}
	left := []string{"units/", "uniters/", "services/", "relations/", "history/", "presence/unit", "leaders/services/", "machines/0/units/"}
	w.eventually("nothing is left", func() string {
		folders, err := filepath.Glob(w.Machine("[au]*s", "*"))
		check(w.t, err)
		keys := w.keys(left)
		return await.Unless(len(folders) == 0 && len(keys) == 0, "folders %v, keys %q", folders, keys)
	})
	w.settle() // waits for the hooks that the units must have run before they left
}

// keys returns the keys with one of the prefixes.
func (w *world) keys(prefixes []string) (keys []string) {
	w.t.Helper()
	s, err := sqlite.Open(w.t.Context(), w.StateFile())
	check(w.t, err)
	defer s.Close()
	snap, err := s.Snapshot(w.t.Context())
	check(w.t, err)
	defer snap.Close()
	for _, p := range prefixes {
		kvs, err := snap.List(w.t.Context(), p)
		check(w.t, err)
		for _, kv := range kvs {
			if !strings.Contains(kv.Key, "/settings/") {
				keys = append(keys, kv.Key)
			}
		}
	}
	return keys
}
