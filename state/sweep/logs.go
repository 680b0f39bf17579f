package sweep

import (
	"context"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
)

// LogGrace is how long the log of a unit or machine is kept after its last line,
// once the unit or machine is gone.
const LogGrace = 7 * 24 * time.Hour

func sweepLogs(ctx context.Context, s *state.State, before time.Time) error {
	old, err := state.Read(ctx, s, func(v *state.View) ([]string, error) { return oldLogs(v, before) })
	if err != nil {
		return err
	}
	for _, source := range old {
		err := s.Update(ctx, func(tx *state.Tx) error { return tx.RemoveLog(source) })
		if err != nil {
			return err
		}
	}
	return nil
}

func oldLogs(v *state.View, before time.Time) (old []string, err error) {
	sources, err := v.LogSources(nil)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		if there, err := v.Keys().HasUnguarded(sourceKey(source)); err != nil {
			return nil, err
		} else if there {
			continue
		}
		last, err := v.Logs(state.LogFilter{Sources: []string{source}, Last: 1})
		if err != nil {
			return nil, err
		}
		if len(last) == 0 || last[0].Time.Before(before) {
			old = append(old, source)
		}
	}
	return old, nil
}

func sourceKey(source string) string {
	if charm.IsUnit(source) {
		return keys.Unit(source)
	}
	return keys.Machine(strings.TrimPrefix(source, "machine-"))
}
