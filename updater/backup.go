package updater

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state/backupfile"
	"bijou/state/keyspace"
	"bijou/updater/keys"
)

// ErrKeysThere is returned by [Restore] if it would replace existing keys.
var ErrKeysThere = errors.New("the store already has keys")

// Backup writes the updater's keys to a backup file, all read at one revision. It leaves out keys that
// concern the current hosts, and keys whose value is not JSON, which the header lists as missing. version is the
// version of this program.
func Backup(ctx context.Context, space *keyspace.Space, to io.Writer, version string) (backupfile.Header, error) {
	h := backupfile.Header{
		Kind:        backupfile.Keyspace,
		Bijou:       version,
		Time:        time.Now().UTC(),
		StateFormat: formatNumber,
		Has:         []string{"boot servers, configuration, the running or last update, history, alerts that have not been sent"},
		Lacks:       []string{"the live workers, the leader, and the turns of rolling components", "the software on boot servers"},
	}

	var stored []backupfile.Key
	var invalid []string
	err := space.View(ctx, func(v *keyspace.View) error {
		kvs, err := v.List("")
		if err != nil {
			return err
		}

		// View may run this function again.
		stored = nil
		invalid = nil
		for _, kv := range kvs {
			switch {
			case isHostBound(kv.Key):
				// The key concerns the current hosts and is useless after a restore.
			case !json.Valid(kv.Value):
				invalid = append(invalid, kv.Key+", which is not JSON")
			default:
				stored = append(stored, backupfile.Key{Key: kv.Key, Value: kv.Value})
			}
		}

		h.Revision, err = v.Revision()
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot read neco's keys: %w", err)
	}

	h.Lacks = append(h.Lacks, invalid...)
	h.Keys = len(stored)
	w := backupfile.NewWriter(to)
	if err := w.AddKeys(stored); err != nil {
		return h, err
	}

	return h, w.Close(h)
}

// isHostBound reports whether the key concerns the current hosts: their presences, claims, inventories and
// activities, the leaders, and the turns of rolling components. After a restore, other hosts may be boot
// servers.
func isHostBound(key string) bool {
	prefixes := []string{keys.Presences, keys.Claims, keys.Inventories, keys.Activities, "leader/"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

const (
	// restoringFormat marks a store in which not all keys have been restored yet.
	restoringFormat = 0
	// maxRestoreBatch is the maximum number of keys that one transaction changes.
	maxRestoreBatch = 50
)

// Restore replaces the updater's keys at the URL with the keys of the backup. It creates the store if it does
// not exist. It returns ErrKeysThere if there are keys without a format. It also does so if replace is false
// and there are keys, unless a previous restore was interrupted. It returns keyspace.ErrRunning if daemons use
// the store, and a different error if this program does not support the backup's format. Nobody can open the store
// until all keys are written. After an interruption, call Restore again.
func Restore(ctx context.Context, url string, a *backupfile.Reader, replace bool) (err error) {
	if a.StateFormat != formatNumber {
		return fmt.Errorf("the keys in the backup have format %d, but this neco supports only format %d",
			a.StateFormat, formatNumber)
	}
	space, err := keyspace.Create(ctx, url, keys.DefaultPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()

	// changes maps each key to its new value. A nil value removes the key. If Update runs its function again, the
	// keys of the earlier run stay in changes. The restore removes or replaces all of them, so that does no harm.
	changes := map[string]*backupfile.Key{}
	err = space.Update(ctx, func(tx *keyspace.Tx) error {
		existing, err := listReplaceable(tx, replace)
		if err != nil {
			return err
		}

		for _, kv := range existing {
			changes[kv.Key] = nil
		}
		return tx.Put(keys.Format, restoringFormat)
	})
	if err != nil {
		return fmt.Errorf("cannot restore neco's keys: %w", err)
	}

	for i, k := range a.Keys {
		changes[k.Key] = &a.Keys[i]
	}

	// The format is written last, since it makes the store usable.
	delete(changes, keys.Format)
	if err := writeInBatches(ctx, space, changes); err != nil {
		return fmt.Errorf("cannot restore neco's keys: %w", err)
	}

	return space.Update(ctx, func(tx *keyspace.Tx) error { return tx.Put(keys.Format, formatNumber) })
}

// writeInBatches writes the keys, and removes those whose change is nil. Each batch is one transaction, so an
// error can leave some of the changes written.
func writeInBatches(ctx context.Context, space *keyspace.Space, changes map[string]*backupfile.Key) error {
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(changes)), maxRestoreBatch) {
		err := space.Update(ctx, func(tx *keyspace.Tx) error {
			for _, key := range batch {
				k := changes[key]
				if k == nil {
					tx.Remove(key)
					continue
				}
				if err := tx.Put(key, k.Value); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// listReplaceable returns the existing keys that a restore replaces: all keys that are not host-bound. If replace is
// false, it accepts no such keys except the remains of an interrupted restore. It returns ErrKeysThere or
// keyspace.ErrRunning as [Restore] does.
func listReplaceable(tx *keyspace.Tx, replace bool) ([]keyspace.KeyValue, error) {
	existing, err := tx.List("")
	if err != nil {
		return nil, err
	}

	for _, kv := range existing {
		if strings.HasPrefix(kv.Key, keys.Presences) || kv.Key == keys.UpdaterLeader {
			return nil, fmt.Errorf("a daemon is running, because the key %q exists: %w", kv.Key, keyspace.ErrRunning)
		}
	}

	// A backup has no host-bound keys, so a restore leaves these keys alone.
	existing = slices.DeleteFunc(existing, func(kv keyspace.KeyValue) bool { return isHostBound(kv.Key) })
	format, hasFormat, err := keyspace.Load[int](tx, keys.Format)
	if err != nil {
		return nil, err
	}

	switch {
	case !hasFormat && len(existing) > 0:
		// Without a format, these keys may belong to a different program.
		return nil, ErrKeysThere
	case hasFormat && format != restoringFormat && !replace:
		return nil, ErrKeysThere
	}

	return existing, nil
}
