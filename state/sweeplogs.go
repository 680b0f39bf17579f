package state

import (
	"context"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// LogGrace is how long the log of a unit or machine is kept after its last line,
// once the unit or machine is gone.
const LogGrace = 7 * 24 * time.Hour

func (s *State) sweepLogs(ctx context.Context, before time.Time) error {
	old, err := Read(ctx, s, func(v *View) ([]string, error) { return v.oldLogs(before) })
	if err != nil {
		return err
	}
	for _, source := range old {
		err := s.Update(ctx, func(tx *Tx) error {
			head, _, err := keyspace.Load[logHead](tx.keys, keys.LogHead(source))
			for n := head.Batch; n > 0 && n > head.Batch-maxLogBatches; n-- {
				tx.keys.Remove(keys.LogBatch(source, n))
			}
			tx.keys.Remove(keys.LogHead(source))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *View) oldLogs(before time.Time) (old []string, err error) {
	sources, err := v.logSources(nil)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		if there, err := v.keys.HasUnguarded(sourceKey(source)); err != nil {
			return nil, err
		} else if there {
			continue
		}
		last, err := v.Logs(LogFilter{Sources: []string{source}, Last: 1})
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
