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

// ErrKeysThere is the error of a restore that would replace keys.
var ErrKeysThere = errors.New("there are others already")

// Backup writes the updater's keys as they are at one revision. version is that of the running program.
func Backup(ctx context.Context, space *keyspace.Space, to io.Writer, version string) (backupfile.Header, error) {
	h := backupfile.Header{
		Kind:        backupfile.Keyspace,
		Bijou:       version,
		Time:        time.Now().UTC(),
		StateFormat: formatNumber,
		Has:         []string{"boot servers, configuration, the update that runs or ran last, history, alerts not sent yet"},
		Lacks:       []string{"which workers live, who leads, whose turn it is", "what is installed on boot servers"},
	}

	var keys []backupfile.Key
	err := space.View(ctx, func(v *keyspace.View) error {
		kvs, err := v.List("")
		keys = nil
		h.Lacks = h.Lacks[:2]
		for _, kv := range kvs {
			switch {
			case isHostBound(kv.Key):
				// No other host has a use for it.
			case !json.Valid(kv.Value):
				h.Lacks = append(h.Lacks, kv.Key+", which is no JSON")
			default:
				keys = append(keys, backupfile.Key{Key: kv.Key, Value: kv.Value})
			}
		}

		if err != nil {
			return err
		}

		h.Revision, err = v.Revision()
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot read neco's keys: %w", err)
	}

	h.Keys = len(keys)
	w := backupfile.NewWriter(to)
	if err := w.AddKeys(keys); err != nil {
		return h, err
	}

	return h, w.Close(h)
}

// isHostBound reports whether the key is about the present hosts: which of them live, lead, have the turn,
// or work as boot servers. After a restore these may be different ones.
func isHostBound(key string) bool {
	return strings.HasPrefix(key, keys.Presences) || strings.HasPrefix(key, keys.Claims) ||
		strings.HasPrefix(key, keys.Inventories) ||
		strings.HasPrefix(key, keys.Activities) || strings.HasPrefix(key, "leader/")
}

const (
	// restoringFormat is the format of keys that are not all there.
	restoringFormat = 0
	// maxRestoreBatch is how many keys one transaction changes.
	maxRestoreBatch = 50
)

// Restore replaces the updater's keys at the URL by those of the backup. It creates the store if there is
// none. It returns ErrKeysThere if there are keys and replace is false, and keyspace.ErrRunning if daemons
// use the store. Nobody can open the store until all keys are written. After an interruption call Restore
// again.
func Restore(ctx context.Context, url string, a *backupfile.Reader, replace bool) (err error) {
	if a.StateFormat != formatNumber {
		return fmt.Errorf("the format of its keys is %d, and this neco knows %d only",
			a.StateFormat, formatNumber)
	}
	space, err := keyspace.Create(ctx, url, keys.DefaultPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()

	changes := map[string]*backupfile.Key{} // nil: it goes
	err = space.Update(ctx, func(tx *keyspace.Tx) error {
		there, err := listReplaceable(tx, replace)
		if err != nil {
			return err
		}

		for _, kv := range there {
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
	delete(changes, keys.Format)

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
			return fmt.Errorf("cannot restore neco's keys: %w", err)
		}
	}

	return space.Update(ctx, func(tx *keyspace.Tx) error { return tx.Put(keys.Format, formatNumber) })
}

// listReplaceable returns the keys that a restore replaces. It returns ErrKeysThere or keyspace.ErrRunning
// as [Restore] does.
func listReplaceable(tx *keyspace.Tx, replace bool) ([]keyspace.KeyValue, error) {
	all, err := tx.List("")
	if err != nil {
		return nil, err
	}

	for _, kv := range all {
		if strings.HasPrefix(kv.Key, keys.Presences) || kv.Key == keys.UpdaterLeader {
			return nil, fmt.Errorf("%q says that a daemon is at work: %w", kv.Key, keyspace.ErrRunning)
		}
	}

	all = slices.DeleteFunc(all, func(kv keyspace.KeyValue) bool { return isHostBound(kv.Key) })
	found, ok, err := keyspace.Load[int](tx, keys.Format)
	if err != nil {
		return nil, err
	}
	if !ok && len(all) > 0 || ok && found != restoringFormat && !replace {
		return nil, ErrKeysThere
	}

	return all, nil
}
