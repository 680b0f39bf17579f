package state

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"bijou/state/store"
)

// KeyspacePrefix stands before the keys of a keyspace in its store unless an etcd URL
// has another prefix: the updater's default.
const KeyspacePrefix = "/neco/"

// Keyspace holds keys that belong to no environment: those of the boot servers' updater.
// Its keys are relative; in etcd they lie below the URL's prefix, as they are, and in an
// SQLite file below KeyspacePrefix. Its values are JSON. Its methods may be called from
// several goroutines.
type Keyspace struct {
	state *State
	root  string // what stands before each key in the store
}

// OpenKeyspace opens the keyspace at the URL, "sqlite:PATH" or "etcd://...",
// where an etcd without a prefix means KeyspacePrefix. It never creates one:
// ErrNoStore.
func OpenKeyspace(ctx context.Context, url string) (*Keyspace, error) {
	url, root := splitKeyspaceURL(url)
	st, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Keyspace{state: &State{store: st}, root: root}, nil
}

// CreateKeyspace is OpenKeyspace, but makes the store if there is none.
func CreateKeyspace(ctx context.Context, url string) (*Keyspace, error) {
	url, root := splitKeyspaceURL(url)
	st, err := createStore(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Keyspace{state: &State{store: st}, root: root}, nil
}

// splitKeyspaceURL completes a URL with the default prefix; root stands before each key
// in that store.
func splitKeyspaceURL(url string) (complete, root string) {
	base, query, _ := strings.Cut(url, "?")
	scheme, rest, _ := strings.Cut(base, "://")
	prefix := strings.TrimRight(KeyspacePrefix, "/")
	switch scheme {
	case "etcd":
		if hosts, path, _ := strings.Cut(rest, "/"); path == "" {
			base = "etcd://" + hosts + prefix
		}
	case "etcd+unix":
		if !strings.Contains("&"+query, "&prefix=") {
			query = strings.TrimPrefix(query+"&prefix="+prefix, "&")
		}
	default:
		return url, KeyspacePrefix
	}
	if query == "" {
		return base, ""
	}
	return base + "?" + query, ""
}

// Close ends the sessions and watchers of this Keyspace. It is idempotent.
func (k *Keyspace) Close() error { return k.state.Close() }

// Health returns how each of the store's endpoints is, as it reports; nil for a store in
// a file.
func (k *Keyspace) Health(ctx context.Context) map[string]string {
	if s, ok := k.state.store.(interface {
		Health(ctx context.Context) map[string]string
	}); ok {
		return s.Health(ctx)
	}
	return nil
}

// View calls f with all reads at one revision, as State.View does.
func (k *Keyspace) View(ctx context.Context, f func(v *KeyView) error) error {
	return k.state.View(ctx, func(v *View) error { return f(&KeyView{view: v, root: k.root}) })
}

// Update commits f's writes, conditional on all that it read, as State.Update does: f
// may be rerun.
func (k *Keyspace) Update(ctx context.Context, f func(tx *KeyTx) error) error {
	return k.state.Update(ctx, k.adaptTx(f))
}

// PutIf writes the key unless guard was written since that revision (GetAt), in one
// request to the store; written is false if it was.
func (k *Keyspace) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written bool, err error) {
	at, err := k.putIf(ctx, []store.Cond{{Key: k.root + guard, Revision: revision}}, key, doc)
	return at != 0, err
}

// putIf returns at which revision the key was written; 0 if a condition did not hold.
func (k *Keyspace) putIf(ctx context.Context, conds []store.Cond, key string, doc any) (revision int64, err error) {
	value, err := encode(k.root+key, doc)
	if err != nil {
		return 0, err
	}
	revision, err = k.state.store.Commit(ctx, store.Txn{Conds: conds, Ops: []store.Op{{Key: k.root + key, Value: value}}})
	if errors.Is(err, store.ErrConflict) {
		return 0, nil
	}
	return revision, err
}

func (k *Keyspace) adaptTx(f func(tx *KeyTx) error) func(tx *Tx) error {
	return func(tx *Tx) error { return f(&KeyTx{KeyView: &KeyView{view: tx.View, root: k.root}, tx: tx}) }
}

// KeyView reads keys at one revision. It must not outlive the call that it was
// handed to.
type KeyView struct {
	view *View
	root string
}

// KeyValue is one key with its JSON, and the revision at which it was written.
type KeyValue struct {
	Key      string
	Value    json.RawMessage
	Revision int64
}

// Get reads the key into doc; ok is false if it is absent. In an Update the
// commit becomes conditional on it.
func (v *KeyView) Get(key string, doc any) (ok bool, err error) {
	value, ok, err := v.view.get(v.root + key)
	if err != nil || !ok {
		return false, err
	}
	return true, KeyValue{Key: key, Value: value}.Decode(doc)
}

// GetAt is Get of a View, and returns at which revision the key was written: 0 if it is
// absent.
func (v *KeyView) GetAt(key string, doc any) (revision int64, err error) {
	v.view.checkOpen()
	kv, ok, err := v.view.snap.Get(v.view.ctx, v.root+key)
	if err != nil || !ok {
		return 0, err
	}
	return kv.Revision, KeyValue{Key: key, Value: kv.Value}.Decode(doc)
}

// List reads all keys with the prefix, in bytewise order. In an Update the commit
// becomes conditional on none of them changing, and no other coming.
func (v *KeyView) List(prefix string) ([]KeyValue, error) {
	return v.trimRoot(v.view.list(v.root + prefix))
}

// ListUnguarded is List without the condition.
func (v *KeyView) ListUnguarded(prefix string) ([]KeyValue, error) {
	return v.trimRoot(v.view.listUnguarded(v.root + prefix))
}

func (v *KeyView) trimRoot(kvs []store.KV, err error) ([]KeyValue, error) {
	all := make([]KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		all = append(all, KeyValue{Key: strings.TrimPrefix(kv.Key, v.root), Value: kv.Value, Revision: kv.Revision})
	}
	return all, err
}

// Revision is the revision of all reads: a watch continues after it.
func (v *KeyView) Revision() (int64, error) { return v.view.Revision() }

// Decode reads the value into doc; the error names the key.
func (kv KeyValue) Decode(doc any) error {
	if err := json.Unmarshal(kv.Value, doc); err != nil {
		return refuse(err, "cannot decode %q: %s", kv.Key, err)
	}
	return nil
}

// KeyTx is one run of an Update.
type KeyTx struct {
	*KeyView
	tx *Tx
}

// Put writes the key.
func (t *KeyTx) Put(key string, doc any) error { return t.tx.put(t.root+key, doc) }

// Writes reports whether anything was written or removed so far.
func (t *KeyTx) Writes() bool { return len(t.tx.buffer.writes) > 0 }

// PutLeased writes a key that vanishes with the session.
func (t *KeyTx) PutLeased(key string, doc any, s *KeySession) error {
	return t.tx.putLeased(t.root+key, doc, s.session.lease.ID())
}

// Remove deletes the key, if it is there.
func (t *KeyTx) Remove(key string) { t.tx.remove(t.root + key) }
