// Package accessed is a store that checks each request of a machine's agents with state/access. With it the
// suites check that agents stay within the rights in the table.
//
// It works like a gateway in front of the store. It decides at the revision of a snapshot, filters
// lists and watches, and makes a commit conditional on the facts behind its rights. It only reports a
// refusal and lets the request through, so that a suite shows all refusals and not only the first. It
// is for tests and is not part of the product.
package accessed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bijou/state/access"
	"bijou/state/store"
)

// Report is called with the right of each request, and with the reason for its refusal or nil.
type Report func(right access.Right, refusal error)

// New returns the store as that identity sees it.
func New(s store.Store, id access.Identity, report Report) store.Store {
	return &asked{Store: s, id: id, report: report, refusedAt: map[string]int64{}}
}

type asked struct {
	store.Store
	id     access.Identity
	report Report

	mu        sync.Mutex
	refusedAt map[string]int64 // the revision at which a watch with that name was first refused
}

// judge reports a request. It does not report a refusal for which there is an exception.
func (a *asked) judge(p *placed, op access.Op, key string, refusal error) {
	right, _ := access.RightOf(op, key)
	if refusal == nil {
		a.report(right, nil)
	} else if !IsExcepted(op, key, p.isGone) {
		a.report(right, refusal)
	}
}

// knows reports whether an agent requests a refused watch although it could know that it has no right to the
// watch. The agent could not know this if the store has changed since the revision from which it wants to
// watch, for example because its unit was removed since then. After the refusal it reads again, so it must
// not request the same watch from the revision of the first refusal or a later one.
func (a *asked) knows(name string, after, now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	first, wasRefused := a.refusedAt[name]
	if after >= now || wasRefused && after >= first {
		return true
	}
	if !wasRefused {
		a.refusedAt[name] = now
	}
	return false
}

// Health returns the store's own health, or nil.
func (a *asked) Health(ctx context.Context) map[string]string {
	if h, ok := a.Store.(store.HealthReporter); ok {
		return h.Health(ctx)
	}
	return nil
}

func (a *asked) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := a.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot{Snapshot: s, a: a, placed: newPlaced(ctx, s)}, nil
}

// snapshot decides at its own revision.
type snapshot struct {
	store.Snapshot
	a      *asked
	placed *placed
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := s.Snapshot.Get(ctx, key)
	if err != nil {
		return kv, ok, err
	}

	refusal := s.placed.may(s.a.id, access.Get, key, valueOf(kv, ok))
	if failure := unlessRefusal(refusal); failure != nil {
		return kv, ok, failure
	}
	s.a.judge(s.placed, access.Get, key, refusal)
	kv.Value = access.Show(s.a.id, key, kv.Value)
	return kv, ok, nil
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	if err != nil {
		return kvs, err
	}

	refusal := s.placed.may(s.a.id, access.List, prefix, nil)
	if failure := unlessRefusal(refusal); failure != nil {
		return nil, failure
	}
	s.a.judge(s.placed, access.List, prefix, refusal)
	if refusal != nil {
		return kvs, nil
	}

	var shown []store.KV
	for _, kv := range kvs {
		refusal := s.placed.may(s.a.id, access.Get, kv.Key, kv.Value)
		if failure := unlessRefusal(refusal); failure != nil {
			return nil, failure
		}
		if refusal == nil {
			kv.Value = access.Show(s.a.id, kv.Key, kv.Value)
			shown = append(shown, kv)
			s.a.judge(s.placed, access.Get, kv.Key, nil)
		}
	}

	return shown, nil
}

// valueOf returns a non-nil value for a key that exists.
func valueOf(kv store.KV, there bool) []byte {
	if !there {
		return nil
	}
	return append([]byte{}, kv.Value...)
}

// unlessRefusal returns err, or nil if err is a refusal.
func unlessRefusal(err error) error {
	if errors.Is(err, access.ErrRefused) {
		return nil
	}
	return err
}

func (a *asked) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	snap, err := a.Store.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	p := newPlaced(ctx, snap)

	verdicts, err := a.askCommit(p, txn)
	if err != nil {
		return 0, err
	}

	whole := txn
	if !slices.ContainsFunc(verdicts, func(v verdict) bool { return v.refusal != nil }) {
		if whole.Conds, err = p.conditions(ctx, txn.Conds); err != nil {
			return 0, err
		}
		if n := len(whole.Conds); n > store.MaxConds && len(txn.Conds) <= store.MaxConds {
			verdicts = append(verdicts, verdict{op: access.Put, key: txn.Ops[0].Key, refusal: fmt.Errorf("%w: %d conditions with those of its rights", access.ErrRefused, n)})
			whole = txn
		}
	}

	revision, err := a.Store.Commit(ctx, whole)
	if errors.Is(err, store.ErrConflict) {
		return revision, err // the decision was about an older state
	}

	for _, v := range verdicts {
		a.judge(p, v.op, v.key, v.refusal)
	}
	return revision, err
}

type verdict struct {
	op      access.Op
	key     string
	refusal error
}

// askCommit checks the right to each write, and to each condition as a read. It returns an error if the store
// could not be read.
func (a *asked) askCommit(p *placed, txn store.Txn) (all []verdict, err error) {
	writes := make([]access.Write, len(txn.Ops))
	for i, op := range txn.Ops {
		writes[i] = access.Write{Key: op.Key, Value: op.Value, Delete: op.Delete, Leased: op.Lease != 0, Quiet: op.Quiet}
		if !op.Delete && op.Value == nil {
			writes[i].Value = []byte{}
		}
	}

	for _, w := range writes {
		refusal := p.mayWrite(a.id, w, writes)
		if failure := unlessRefusal(refusal); failure != nil {
			return nil, failure
		}
		all = append(all, verdict{w.Op(), w.Key, refusal})
	}

	for _, c := range txn.Conds {
		op, key := access.List, c.Prefix
		var value []byte
		if c.Key != "" {
			op, key = access.Get, c.Key
			if value, err = p.reader.Get(key); err != nil {
				return nil, err
			}
		}

		refusal := newPlacement(p).may(a.id, op, key, value)
		if failure := unlessRefusal(refusal); failure != nil {
			return nil, failure
		}
		all = append(all, verdict{op, key, refusal})
	}

	return all, nil
}

func (a *asked) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	snap, err := a.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()

	now, err := snap.Revision(ctx)
	if err != nil {
		return nil, err
	}

	p := newPlaced(ctx, snap)
	for _, name := range slices.Concat(scope.Keys, scope.Prefixes) {
		refusal := p.may(a.id, access.Watch, name, nil)
		if slices.Contains(scope.Prefixes, name) {
			refusal = p.mayWatchPrefix(a.id, name)
		}
		if failure := unlessRefusal(refusal); failure != nil {
			return nil, failure
		}
		if refusal == nil || a.knows(name, after, now) {
			a.judge(p, access.Watch, name, refusal)
		}
	}

	w, err := a.Store.Watch(ctx, after, scope)
	if err != nil {
		return nil, err
	}
	return &watcher{Watcher: w, a: a, scope: scope}, nil
}

// watcher shows what its machine can read in the state at the time of delivery. It shows deletions of
// keys as long as the watch itself is allowed.
type watcher struct {
	store.Watcher
	a     *asked
	scope store.Scope
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	for {
		b, err := w.Watcher.Next(ctx)
		if err != nil {
			return b, err
		}
		if b.Events = w.filter(ctx, b.Events); len(b.Events) > 0 {
			return b, nil
		}
	}
}

// filter shows everything if the store cannot be read, so that the tests continue.
func (w *watcher) filter(ctx context.Context, events []store.Event) (shown []store.Event) {
	snap, err := w.a.Store.Snapshot(ctx)
	if err != nil {
		return events
	}
	defer snap.Close()

	p := newPlaced(ctx, snap)
	for _, e := range events {
		value, err := p.reader.Get(e.Key)
		if err != nil {
			return events
		}
		if e.Deleted && w.mayHear(p, e.Key) || !e.Deleted && p.may(w.a.id, access.Get, e.Key, value) == nil {
			e.Value = access.Show(w.a.id, e.Key, e.Value)
			shown = append(shown, e)
		}
	}

	return shown
}

// mayHear reports whether at least one of the watches that cover the key is allowed now.
func (w *watcher) mayHear(p *placed, key string) bool {
	for _, name := range w.scope.Keys {
		if name == key && p.may(w.a.id, access.Watch, name, nil) == nil {
			return true
		}
	}
	for _, prefix := range w.scope.Prefixes {
		if strings.HasPrefix(key, prefix) && p.may(w.a.id, access.Watch, prefix, nil) == nil {
			return true
		}
	}
	return false
}

// placed is a placement at a snapshot's revision. Several goroutines can read the snapshot.
type placed struct {
	mu        sync.Mutex
	reader    *reader
	placement *access.Placement
}

func newPlaced(ctx context.Context, s store.Snapshot) *placed {
	return newPlacement(&placed{reader: &reader{ctx: ctx, snap: s, values: map[string][]byte{}, revisions: map[string]int64{}}})
}

// newPlacement returns an unused placement at the same revision.
func newPlacement(p *placed) *placed {
	return &placed{reader: p.reader, placement: access.NewPlacement(p.reader).At(time.Now())}
}

func (p *placed) mayWatchPrefix(id access.Identity, prefix string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return access.MayWatchPrefix(id, p.placement, prefix)
}

func (p *placed) may(id access.Identity, op access.Op, key string, value []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return access.May(id, p.placement, op, key, value, nil)
}

func (p *placed) mayWrite(id access.Identity, w access.Write, all []access.Write) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return access.MayWrite(id, p.placement, w, all)
}

func (p *placed) isGone(unit string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, err := p.reader.Get("units/" + unit)
	return err == nil && IsGone(value)
}

// conditions returns the commit's own conditions, and conditions for the facts that its rights depend on.
func (p *placed) conditions(ctx context.Context, conds []store.Cond) ([]store.Cond, error) {
	keys, prefixes := p.placement.Used()
	all := slices.Clone(conds)
	has := func(c store.Cond) bool {
		return slices.ContainsFunc(conds, func(o store.Cond) bool { return o.Key == c.Key && o.Prefix == c.Prefix })
	}

	for _, key := range keys {
		if c := (store.Cond{Key: key, Revision: p.reader.revisions[key]}); !has(c) {
			all = append(all, c)
		}
	}
	if len(prefixes) == 0 {
		return all, nil
	}

	revision, err := p.reader.snap.Revision(ctx)
	for _, prefix := range prefixes {
		if c := (store.Cond{Prefix: prefix, Revision: revision}); !has(c) {
			all = append(all, c)
		}
	}
	return all, err
}

// reader is access's view of a snapshot. It reads each key once, so that isGone can explain a refusal even if
// the agent's request has ended by then.
type reader struct {
	ctx       context.Context
	snap      store.Snapshot
	values    map[string][]byte
	revisions map[string]int64 // of the keys that were read; 0: absent
}

func (r *reader) Get(key string) ([]byte, error) {
	if value, known := r.values[key]; known {
		return value, nil
	}

	kv, ok, err := r.snap.Get(r.ctx, key)
	if err != nil {
		return nil, err
	}
	r.values[key] = valueOf(kv, ok)
	r.revisions[key] = kv.Revision
	return r.values[key], nil
}

func (r *reader) List(prefix string) (map[string][]byte, error) {
	kvs, err := r.snap.List(r.ctx, prefix)
	values := map[string][]byte{}
	for _, kv := range kvs {
		values[kv.Key] = valueOf(kv, true)
	}
	return values, err
}
