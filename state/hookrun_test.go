package state_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/statetest"
)

// TestHookRunsAreSmall runs a hook that prints a megabyte. The status of its unit must be as usual. On every
// store the record of the hook must be small. It must not contain a part of a character, or a part of a URL
// with a password.
func TestHookRunsAreSmall(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		st, _ := statetest.SQLite(t)
		saysMegabyte(t, st)
	})
	t.Run("etcd", func(t *testing.T) {
		etcdtest.Need(t)
		url := etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/small")
		check(t, state.Create(t.Context(), url, statetest.Environment()))
		saysMegabyte(t, statetest.Open(t, url))
	})
}

func saysMegabyte(t *testing.T, st *state.State) {
	statetest.AddService(t, st, statetest.MySQL(), 1)
	begin := strings.Repeat("é", 480) + " https://me:"
	secret := strings.Repeat("x", 1_000_000)
	whole := begin + secret + "@" + strings.Repeat("host", 1000)
	for seq, message := range []string{whole, strings.Repeat("é", 100_000), "short", strings.Repeat("a", 1024)} {
		said := state.WorkloadStatus{Status: "active", Message: message}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetUnitStatus("mysql/0", said) })
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.AddHookRun("mysql/0", state.HookRun{Seq: int64(seq), Hook: "start", Said: &said})
		})
		u := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("mysql/0") })
		hidden := strings.ReplaceAll(message, secret, "(hidden)") // the status does not show a part of a password either
		kept, cut, isCut := strings.Cut(u.Status.Message, "...")
		if isCut != (len(hidden) > 4<<10) || isCut && cut != fmt.Sprintf(" (%d bytes cut off)", len(hidden)-len(kept)) ||
			!strings.HasPrefix(hidden, kept) || len(u.Status.Message) < min(len(hidden), 4<<10-10) || len(u.Status.Message) > 4<<10 {
			t.Errorf("the unit's status has %d bytes of %d", len(u.Status.Message), len(message))
		}
		record := statetest.Read(t, st, func(v *state.View) ([]byte, error) {
			data, _, err := v.Keys().Get(keys.HookRun("mysql/0", seq))
			return data, err
		})
		if n := len(record); n == 0 || n > 1300 {
			t.Errorf("the hook's record has %d bytes", n)
		}
	}
	runs := statetest.Read(t, st, func(v *state.View) ([]state.HookRun, error) { return v.HookRuns("mysql/0") })
	for i, test := range []struct{ prefix, suffix string }{{begin + "(hidden)@", " bytes cut off)"}, {"éé", " bytes cut off)"}, {"short", "short"}, {"aa", "aa"}} {
		got := runs[i].Said.Message
		if !utf8.ValidString(got) || !strings.HasPrefix(got, test.prefix) || !strings.HasSuffix(got, test.suffix) {
			t.Errorf("of hook %d it has %q", i, got)
		}
	}
}
