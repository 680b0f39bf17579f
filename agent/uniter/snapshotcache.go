package uniter

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bijou/agent/uniter/decide"
	"bijou/state"
)

// snapshotCache holds what the loop knows of the store. Everything is read once; from then
// on the unit's own records follow what the loop itself commits, members are read one by
// one as the watch names them, and the rest is read again when any of it has changed. So a
// hub of a thousand members does not read all of them again for each of their hooks.
//
// The rest is of one revision. A member may be older than that until the watch names it: as
// if the loop had read a moment earlier, which it might have.
type snapshotCache struct {
	valid        bool // snap was read, and is current but for what is stale
	snap         decide.Snapshot
	staleMembers []decide.Member
	staleRest    bool
	madeHooks    []string // outlasts an invalidation: it is not of the store
}

func (c *snapshotCache) invalidate() {
	*c = snapshotCache{madeHooks: c.madeHooks}
}

func (c *snapshotCache) isFresh() bool { return c.valid && !c.staleRest && len(c.staleMembers) == 0 }

// markStale notes which parts of the snapshot the changed keys belong to: one member, or all else.
func (c *snapshotCache) markStale(keys []string) {
	for _, key := range keys {
		if id, unit, ok := state.MembershipOf(key); ok {
			c.staleMembers = append(c.staleMembers, decide.Member{Relation: id, Name: unit})
		} else {
			c.staleRest = true
		}
	}
}

// applyWrites applies the writes of the unit's own commit to the cached snapshot. It skips the unit's own
// membership and settings in relations, which no snapshot holds. It marks all else that has changed as
// stale.
func (c *snapshotCache) applyWrites(unit string, w state.Writes) {
	if !c.valid {
		return
	}

	for _, key := range w.ChangedKeys() {
		id, member, ok := state.RelationRecordOf(unit, key)
		_, isEntered := c.snap.Uniter.Relations[id]
		switch {
		case ok && member == "" && !isEntered:
			c.snap.Uncompared = nil // all who are in it are to be compared
		case ok:
			c.snap.Uncompared.Add(decide.Member{Relation: id, Name: member})
		case !state.WatchUniter(unit).Has(key) && !state.WatchRelations().Has(key) &&
			!state.WatchHistory(unit).Has(key):
			c.staleRest = true
		}
	}

	if err := w.Apply(unit, &c.snap.Uniter); err != nil {
		c.invalidate()
	}
}

// noteDecided takes note of a decision. If no member had anything new for the queue, the members need not be
// compared again until they change.
func (c *snapshotCache) noteDecided(next decide.Step, snap decide.Snapshot) {
	_, queues := next.(decide.Enqueue)
	if !queues && snap.Queued == nil && snap.IsQueueOpen() {
		c.snap.Uncompared = decide.Members{}
	}
}

// commitStep commits between two fault points, before-STEP and after-STEP.
func (u *uniter) commitStep(ctx context.Context, step string, f func(tx *state.Tx) error) error {
	u.faultPoint("before-" + step)
	err := u.Update(ctx, f)
	if err != nil {
		return err
	}

	u.faultPoint("after-" + step)
	return nil
}

// commit commits f, and updates the cache, so that the loop need not read again the records that f has
// written.
func (u *uniter) commit(ctx context.Context, f func(tx *state.Tx) error) error {
	var wrote state.Writes
	err := u.rawUpdate(ctx, func(tx *state.Tx) error {
		err := f(tx)
		wrote = tx.Writes()
		return err
	})
	if err != nil {
		u.cache.invalidate()
		return err
	}

	u.cache.applyWrites(u.Unit, wrote)
	return nil
}

// takeSnapshot applies the changes that the watch has seen, and returns the snapshot.
func (u *uniter) takeSnapshot(ctx context.Context) (decide.Snapshot, error) {
	u.noteMadeHooks()
	keys, lost, err := u.watch.Take()
	if lost {
		u.cache.invalidate()
	}

	u.cache.markStale(keys)
	if err != nil {
		u.cache.invalidate()
		return decide.Snapshot{}, err
	}
	if err := u.refreshCache(ctx); err != nil {
		u.cache.invalidate()
		return decide.Snapshot{}, err
	}

	s := u.cache.snap
	s.Now = now()
	s.LastHook = u.lastHookEnd
	s.Running = u.running != nil
	if s.Running {
		s.Ending = u.running.endReason != ""
		s.Begun = u.running.op.Started
	}
	return s, nil
}

// refreshCache reads the stale parts of the snapshot again, and renews the watch of what it depends on.
func (u *uniter) refreshCache(ctx context.Context) error {
	if u.cache.isFresh() {
		return nil
	}

	var revision int64
	err := u.State.View(ctx, func(v *state.View) (err error) {
		if err := u.cache.refresh(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil || u.cache.snap.Gone {
		return err
	}

	return u.renewWatch(ctx, u.cache.snap, revision)
}

// maxSingleReads members are read one by one; of more, all are.
const maxSingleReads = 16

// refresh reads again the records that have changed since the last call, or all if the cache is not valid.
// The cache stays as it was if refresh returns an error: the view may call again, and must not find a
// snapshot that was read in part.
func (c *snapshotCache) refresh(v *state.View, unit string) (err error) {
	fresh := c.snap
	switch {
	case !c.valid:
		fresh, err = readSnapshot(v, unit, c.madeHooks)
	case c.staleRest:
		fresh, err = c.readRest(v, unit)
	}
	if err != nil {
		return err
	}

	if !fresh.Gone {
		if err := c.refreshMembers(v, &fresh); err != nil {
			return err
		}
	}

	*c = snapshotCache{valid: true, snap: fresh, madeHooks: c.madeHooks}
	return nil
}

// refreshMembers reads the stale members one by one, or all members if many are stale.
func (c *snapshotCache) refreshMembers(v *state.View, fresh *decide.Snapshot) error {
	if len(c.staleMembers) > maxSingleReads {
		fresh.Uncompared = nil
		return readMembers(v, fresh)
	}

	for _, m := range c.staleMembers {
		fresh.Uncompared.Add(m)
		if err := readMember(v, fresh, m); err != nil {
			return err
		}
	}

	return nil
}

// readRest reads everything except the unit's own records and the members. If a relation was added or
// removed, it reads the members too, since those of a new relation were not watched.
func (c *snapshotCache) readRest(v *state.View, unit string) (decide.Snapshot, error) {
	if err := v.PrefetchUnit(unit); err != nil {
		return decide.Snapshot{}, err
	}

	fresh, err := readSurroundings(v, unit, c.snap.Uniter, c.snap.Hooks)
	if err != nil || fresh.Gone {
		return fresh, err
	}
	if !slices.Equal(slices.Sorted(maps.Keys(fresh.Relations)), slices.Sorted(maps.Keys(c.snap.Relations))) {
		return fresh, readMembers(v, &fresh)
	}

	for id, r := range fresh.Relations {
		r.Members = c.snap.Relations[id].Members
		fresh.Relations[id] = r
	}

	return fresh, nil
}

// noteMadeHooks looks for hooks that appeared in the charm's directory at run time. Many install hooks link
// all other hooks to themselves. It looks once at the start, and again after each hook.
func (u *uniter) noteMadeHooks() {
	if u.madeHooksAt.Equal(u.lastHookEnd) {
		return
	}

	u.madeHooksAt = u.lastHookEnd
	var made []string

	// An error is left to the hook that runs next.
	entries, _ := os.ReadDir(filepath.Join(u.Folder.Charm(), "hooks"))
	for _, e := range entries {
		if !e.IsDir() {
			made = append(made, e.Name())
		}
	}

	if !slices.Equal(made, u.cache.madeHooks) {
		u.cache.madeHooks = made
		u.cache.invalidate()
	}
}
