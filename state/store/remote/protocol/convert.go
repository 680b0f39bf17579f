package protocol

import "bijou/state/store"

// FromTxn converts a transaction to a message.
func FromTxn(txn store.Txn) *CommitRequest {
	r := &CommitRequest{}
	for _, c := range txn.Conds {
		r.Conditions = append(r.Conditions, &Condition{
			Key:      []byte(c.Key),
			Prefix:   []byte(c.Prefix),
			Revision: c.Revision,
		})
	}

	for _, o := range txn.Ops {
		r.Operations = append(r.Operations, &Operation{
			Key:    []byte(o.Key),
			Value:  o.Value,
			Delete: o.Delete,
			Lease:  int64(o.Lease),
			Quiet:  o.Quiet,
		})
	}
	return r
}

// Txn returns the transaction of a message. The caller must check it.
func (r *CommitRequest) Txn() store.Txn {
	var txn store.Txn
	for _, c := range r.GetConditions() {
		txn.Conds = append(txn.Conds, store.Cond{
			Key:      string(c.GetKey()),
			Prefix:   string(c.GetPrefix()),
			Revision: c.GetRevision(),
		})
	}

	for _, o := range r.GetOperations() {
		txn.Ops = append(txn.Ops, store.Op{
			Key:    string(o.GetKey()),
			Value:  o.GetValue(),
			Delete: o.GetDelete(),
			Lease:  store.LeaseID(o.GetLease()),
			Quiet:  o.GetQuiet(),
		})
	}
	return txn
}

// FromScope returns the request to watch a scope after a revision.
func FromScope(after int64, scope store.Scope) *WatchRequest {
	return &WatchRequest{After: after, Keys: FromKeys(scope.Keys), Prefixes: FromKeys(scope.Prefixes)}
}

// Scope returns the scope of a message.
func (r *WatchRequest) Scope() store.Scope {
	return store.Scope{Keys: ToKeys(r.GetKeys()), Prefixes: ToKeys(r.GetPrefixes())}
}

// FromBatch returns the message for a batch.
func FromBatch(b store.Batch) *WatchResponse {
	r := &WatchResponse{Revision: b.Revision}
	for _, e := range b.Events {
		r.Events = append(r.Events, &Event{Key: []byte(e.Key), Deleted: e.Deleted, Value: e.Value})
	}
	return r
}

// Batch returns the batch of a message.
func (r *WatchResponse) Batch() store.Batch {
	b := store.Batch{Revision: r.GetRevision()}
	for _, e := range r.GetEvents() {
		b.Events = append(b.Events, store.Event{Key: string(e.GetKey()), Deleted: e.GetDeleted(), Value: e.GetValue()})
	}
	return b
}

// FromKV returns the message for a key.
func FromKV(kv store.KV) *KeyValue {
	return &KeyValue{Key: []byte(kv.Key), Value: kv.Value, Revision: kv.Revision}
}

// KV returns the key of a message.
func (m *KeyValue) KV() store.KV {
	return store.KV{Key: string(m.GetKey()), Value: m.GetValue(), Revision: m.GetRevision()}
}

// FromKeys converts keys or prefixes to the form that messages have.
func FromKeys(keys []string) [][]byte {
	encoded := make([][]byte, len(keys))
	for i, key := range keys {
		encoded[i] = []byte(key)
	}
	return encoded
}

// ToKeys converts the keys or prefixes of a message to strings.
func ToKeys(encoded [][]byte) []string {
	keys := make([]string, len(encoded))
	for i, key := range encoded {
		keys[i] = string(key)
	}
	return keys
}
