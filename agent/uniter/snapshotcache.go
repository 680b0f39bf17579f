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

// snapshotCache holds the loop's copy of the store's records, in three parts: the records that only the loop
// writes (Snapshot.Uniter), the members of relations, and the rest. The first refresh reads all parts. After
// that, the loop's own commits update the first part. A changed member is read alone. The rest is read again
// as a whole when any record in it changes. So a unit that is related to a thousand units does not read all
// of them for each hook.
//
// The records of the rest come from one revision. A member can be older than that revision until the watch
// reports the member's change. This is harmless, since the decision is the same as if the loop had read a
// moment earlier.
type snapshotCache struct {
	valid        bool            // snap was read, and is current except for its stale parts
	snap         decide.Snapshot // the copy
	staleMembers []decide.Member // members that must be read again
	staleRest    bool            // the rest must be read again
	madeHooks    []string        // see noteMadeHooks
}

// invalidate makes the next refresh read all parts. It keeps madeHooks, since they do not come from the store.
func (c *snapshotCache) invalidate() {
	*c = snapshotCache{madeHooks: c.madeHooks}
}

// isFresh reports whether all parts are current.
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

// applyWrites applies the writes of the loop's own commit to the cached snapshot: to the records that only
// the loop writes, and to the next action. It adds the members in these records to the members to compare. If
// the commit has written another part of the snapshot, or if the next action is not known, applyWrites marks
// the rest as stale. If it cannot apply the writes, it invalidates the cache.
func (c *snapshotCache) applyWrites(unit string, w state.Writes) {
	if !c.valid {
		return
	}

	for _, key := range w.ChangedKeys() {
		id, member, isRelationRecord := state.RelationRecordOf(unit, key)
		if !isRelationRecord {
			if !isOwnKey(unit, key) {
				c.staleRest = true
			}
			continue
		}

		_, isEntered := c.snap.Uniter.Relations[id] // before this commit
		isRelation := member == ""                  // the key of the unit's record of the relation itself
		if isRelation && !isEntered {
			c.snap.Uncompared = nil // all members of the new relation must be compared
			continue
		}
		// For the record of an entered relation the name is empty, so this adds no real member.
		c.snap.Uncompared.Add(decide.Member{Relation: id, Name: member})
	}

	next, known := actions.NextAfter(w, unit, c.snap.Action)
	c.snap.Action = next
	if !known {
		c.staleRest = true // the next refresh reads the action
	}

	if err := w.Apply(unit, &c.snap.Uniter); err != nil {
		c.invalidate()
	}
}

// isOwnKey reports whether the loop can write this key without making the rest stale. Such a key is in
// Snapshot.Uniter, belongs to an action, or is not in a snapshot: the unit's history, and its own membership
// and settings in relations.
func isOwnKey(unit, key string) bool {
	return state.WatchUniter(unit).Has(key) ||
		state.WatchRelations().Has(key) ||
		state.WatchHistory(unit).Has(key) ||
		actions.WrittenBy(unit, key)
}

// noteDecided clears the set of members to compare, if the decision has found no arrivals among them. These
// members need no comparison until they change again. While the queue is closed, no members were compared, so
// noteDecided keeps the set.
func (c *snapshotCache) noteDecided(next decide.Step, snap decide.Snapshot) {
	_, isEnqueue := next.(decide.Enqueue)
	// With snap.Queued, NextTogether has combined an Enqueue with the hook that follows it.
	foundArrivals := isEnqueue || snap.Queued != nil
	if !foundArrivals && snap.IsQueueOpen() {
		c.snap.Uncompared = decide.Members{}
	}
}

// commitStep commits f between two fault points, before-STEP and after-STEP.
func (u *uniter) commitStep(ctx context.Context, step string, f func(tx *state.Tx) error) error {
	u.faultPoint("before-" + step)
	if err := u.Update(ctx, f); err != nil {
		return err
	}
	u.faultPoint("after-" + step)
	return nil
}

// commit commits f, and updates the cache, so that the loop does not have to read the records that f has
// written. After an error it invalidates the cache.
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

// takeSnapshot reads again the parts of the cached snapshot that have changed, and returns the snapshot with
// the current time and the state of the hook in flight. If the watch has ended, it reads all parts again. If
// it returns an error, the next call reads all parts again.
func (u *uniter) takeSnapshot(ctx context.Context) (decide.Snapshot, error) {
	u.noteMadeHooks()

	keys, lost, err := u.watch.Take()
	if lost { // there is no watch, or it has ended
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

// refreshCache reads the stale parts of the snapshot again, and renews the watch of the records on which the
// snapshot depends.
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
	if err != nil {
		return err
	}
	if u.cache.snap.Gone {
		return nil // nothing is left to watch
	}

	return u.renewWatch(ctx, u.cache.snap, revision)
}

// maxSingleReads is how many stale members are read one by one. If more members are stale, all members are
// read.
const maxSingleReads = 16

// refresh reads the stale parts again, or all parts if the cache is not valid. If it returns an error, the stale
// parts stay marked: the view may call refresh again, and the second call must read all of them.
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

// refreshMembers reads the stale members again into fresh: one by one, or all members if many are stale.
func (c *snapshotCache) refreshMembers(v *state.View, fresh *decide.Snapshot) error {
	if len(c.staleMembers) > maxSingleReads {
		fresh.Uncompared = nil // all members must be compared
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

// readRest returns a snapshot whose rest was read again, as snapshotCache defines the rest. It copies the
// other parts from the cached snapshot. If a relation was added or removed, it also reads all members, since
// the members of a new relation were not watched. All members of the returned snapshot must be compared
// again.
func (c *snapshotCache) readRest(v *state.View, unit string) (decide.Snapshot, error) {
	if err := v.PrefetchUnit(unit); err != nil {
		return decide.Snapshot{}, err
	}

	fresh, err := readSurroundings(v, unit, c.snap.Uniter, c.snap.Hooks)
	if err != nil {
		return fresh, err
	}
	if fresh.Gone {
		return fresh, nil
	}

	oldIDs := slices.Sorted(maps.Keys(c.snap.Relations))
	freshIDs := slices.Sorted(maps.Keys(fresh.Relations))
	if !slices.Equal(freshIDs, oldIDs) {
		err = readMembers(v, &fresh)
		return fresh, err
	}

	for id, r := range fresh.Relations {
		r.Members = c.snap.Relations[id].Members
		fresh.Relations[id] = r
	}

	return fresh, nil
}

// noteMadeHooks lists the files in the charm's hooks directory, and invalidates the cache if the list has
// changed. The install hooks of many charms create symlinks to themselves there, one for each other hook.
// Only hooks create such symlinks, so noteMadeHooks lists the directory only at the agent's start and after
// each hook.
func (u *uniter) noteMadeHooks() {
	if u.madeHooksAt.Equal(u.lastHookEnd) {
		return
	}
	u.madeHooksAt = u.lastHookEnd

	// A directory that cannot be read counts as empty. The next hook reports the problem.
	var made []string
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
