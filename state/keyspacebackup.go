package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state/archive"
	"bijou/state/store"
)

// KeyBackup says how a keyspace is backed up and restored.
type KeyBackup struct {
	FormatKey string   // holds the number of the keys' format
	Format    int      // the one that is known
	Leave     []string // prefixes of keys that are left behind: who lives, who leads
	Running   []string // prefixes of keys that only those have who are at work
}

// Backup writes all keys as they are at one revision. The header is complete but for
// what only its caller knows.
func (k *Keyspace) Backup(ctx context.Context, b KeyBackup, w *archive.Writer) (archive.Header, error) {
	h := archive.Header{Kind: archive.Keyspace, Time: time.Now().UTC(), StateFormat: b.Format}
	var all []store.KV
	err := k.state.View(ctx, func(v *View) (err error) {
		if all, err = k.taken(v, b); err == nil {
			h.Revision, err = v.Revision()
		}
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot read the keys: %w", err)
	}
	h.Keys = len(all)
	return h, addKeys(w, all, k.root)
}

// taken lists the keys that are backed up.
func (k *Keyspace) taken(v *View, b KeyBackup) ([]store.KV, error) {
	kvs, err := v.list(k.root)
	left := func(kv store.KV) bool {
		return slices.ContainsFunc(b.Leave, func(p string) bool { return strings.HasPrefix(kv.Key, k.root+p) })
	}
	return slices.DeleteFunc(slices.Clone(kvs), left), err
}

// halfRestored is the format of keys that are not all there.
const halfRestored = 0

// Restore makes the keys those of the backup; with replace in place of others.
// ErrStoreExists: there are others. ErrRunning: somebody is at work there. Until all
// is there it has no known format; whoever is interrupted calls it again.
func (k *Keyspace) Restore(ctx context.Context, b KeyBackup, a *archive.Reader, replace bool) error {
	if a.StateFormat != b.Format {
		return refuse(ErrFormat, "the format of its keys is %d, and not %d", a.StateFormat, b.Format)
	}
	var there []store.KV
	err := k.state.Update(ctx, func(tx *Tx) (err error) {
		if there, err = k.checkTarget(tx, b, replace); err != nil {
			return err
		}
		return tx.put(k.root+b.FormatKey, halfRestored)
	})
	if err != nil {
		return fmt.Errorf("cannot restore neco's keys: %w", err)
	}
	formatAt := func(kv store.KV) bool { return kv.Key == k.root+b.FormatKey }
	var all []store.KV
	for _, key := range a.Keys {
		all = append(all, store.KV{Key: k.root + key.Key, Value: key.Value})
	}
	all = slices.DeleteFunc(all, formatAt)
	c := &copier{to: k.state.store, fault: func(string) {}}
	if err := c.removeOthers(ctx, all, slices.DeleteFunc(there, formatAt)); err != nil {
		return err
	}
	for _, kv := range all {
		if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
			return err
		}
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	return k.state.Update(ctx, func(tx *Tx) error { return tx.put(k.root+b.FormatKey, b.Format) })
}

// checkTarget answers the keys that are there, if they may be replaced.
func (k *Keyspace) checkTarget(tx *Tx, b KeyBackup, replace bool) ([]store.KV, error) {
	found, ok, err := load[int](tx.View, k.root+b.FormatKey)
	if err != nil {
		return nil, errors.Join(refuse(ErrStoreExists, "there is something else"), err)
	}
	for _, prefix := range b.Running {
		kvs, err := tx.list(k.root + prefix)
		if err != nil {
			return nil, err
		}
		if len(kvs) > 0 {
			return nil, refuse(ErrRunning, "there still run workers or updaters, as %q says", kvs[0].Key)
		}
	}
	there, err := k.taken(tx.View, b)
	switch {
	case err != nil:
		return nil, err
	case ok && found != halfRestored && !replace:
		return nil, refuse(ErrStoreExists, "there are neco's keys already")
	case !ok && len(there) > 0:
		return nil, refuse(ErrStoreExists, "there is something else")
	}
	return there, nil
}
