package uniter

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/actions"
)

// snapshotCache holds the loop's copy of the store's records. The first refresh reads all of them. Later the
// loop's own commits update the unit's records, and a changed member is read separately. The rest is read
// again as a whole when any part of it changes. So a unit related to a thousand others does not read all of
// them again for each hook.
//
// The rest comes from one revision. A member can be older than that revision until the watch reports its
// change. This is harmless, since the result is the same as if the loop had read a moment earlier.
type snapshotCache struct {
	valid        bool // snap was read, and is current except for its stale parts
	snap         decide.Snapshot
	staleMembers []decide.Member
	staleRest    bool
	madeHooks    []string // survives invalidate, since it does not come from the store
}

func (c *snapshotCache) invalidate() {
	*c = snapshotCache{madeHooks: c.madeHooks}
}

func (c *snapshotCache) isFresh() bool { return c.valid && !c.staleRest && len(c.staleMembers) == 0 }

// markStale marks the parts of the snapshot to which the changed keys belong: single members, or the rest.
func (c *snapshotCache) markStale(keys []string) {
	for _, key := range keys {
		if id, unit, ok := state.MembershipOf(key); ok {
			c.staleMembers = append(c.staleMembers, decide.Member{Relation: id, Name: unit})
		} else {
			c.staleRest = true
		}
	}
}

// applyWrites applies the writes of the unit's own commit to the cached snapshot. It skips the unit's own membership and
// settings in relations, which are not part of a snapshot. It marks all other changed records as stale.
func (c *snapshotCache) applyWrites(unit string, w state.Writes) {
	if !c.valid {
		return
	}

	for _, key := range w.ChangedKeys() {
		id, member, ok := state.RelationRecordOf(unit, key)
		_, isEntered := c.snap.Uniter.Relations[id]
		switch {
		case ok && member == "" && !isEntered:
			c.snap.Uncompared = nil // all members of the new relation must be compared
		case ok:
			c.snap.Uncompared.Add(decide.Member{Relation: id, Name: member})
		case !state.WatchUniter(unit).Has(key) && !state.WatchRelations().Has(key) &&
			!state.WatchHistory(unit).Has(key) && !actions.WrittenBy(unit, key):
			c.staleRest = true
		}
	}

	next, known := actions.NextAfter(w, unit, c.snap.Action)
	c.snap.Action = next
	c.staleRest = c.staleRest || !known

	if err := w.Apply(unit, &c.snap.Uniter); err != nil {
		c.invalidate()
	}
}

// noteDecided clears the list of members to compare, if the decision has found no arrivals among them. They
// need no comparison until they change again.
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

// refreshCache reads the stale parts of the snapshot again, and renews the watch of the records on which it
// depends.
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

// maxSingleReads is the number of stale members up to which they are read one by one. If more are stale, all
// members are read.
const maxSingleReads = 16

// refresh reads the stale records again, or all records if the cache is not valid. If it returns an error the
// cache stays unchanged. The view may run it again, and the second run must not find a partial snapshot.
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
// removed, it also reads all members, since the members of a new relation were not watched.
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

// noteMadeHooks lists the charm's hooks directory, and invalidates the cache if the list has changed. Many
// install hooks create symlinks to themselves for all other hooks. It lists the directory only at the start and
// after each hook, since only hooks create such symlinks.
func (u *uniter) noteMadeHooks() {
	if u.madeHooksAt.Equal(u.lastHookEnd) {
		return
	}

	u.madeHooksAt = u.lastHookEnd
	var made []string

	// A directory that cannot be read counts as empty. The next hook reports the problem.
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
