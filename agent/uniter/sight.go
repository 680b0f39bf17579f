package uniter

import (
	"context"
	"errors"
	"slices"

	"bijou/state"
)

// sight is what the loop knows of the store. It is read whole once; after that
// the unit's own records follow what the loop itself commits, the members are
// read one by one as the watch tells of them, and the rest is read again when
// any of it has changed. So a hub of a thousand members does not read all of
// them again for each of their hooks.
//
// The rest is of one revision. A member may be as it was before that, until the
// watch tells of it: as if the loop had looked a moment earlier, which it might
// have.
type sight struct {
	known   bool // snap is what there was, but for what is noted below
	snap    Snapshot
	members []membership // that have changed since
	rest    bool         // something else has
}

// membership names one entry of a relation's members.
type membership struct {
	relation int
	unit     string
}

// forget has everything read again.
func (s *sight) forget() { *s = sight{} }

// told notes keys of which the watch tells.
func (s *sight) told(keys []string) {
	for _, key := range keys {
		if id, unit, ok := state.MembershipOf(key); ok {
			s.members = append(s.members, membership{id, unit})
		} else {
			s.rest = true
		}
	}
}

// wrote takes up what the loop has committed. What it writes below relations is
// its own membership and settings, which it does not look at.
func (s *sight) wrote(unit string, w state.Writes) {
	if !s.known {
		return
	}
	if err := w.Apply(unit, &s.snap.Uniter); err != nil {
		s.forget()
		return
	}
	for _, key := range w.Keys() {
		if !state.WatchUniter(unit).Has(key) && !state.WatchRelations().Has(key) && !state.WatchHistory(unit).Has(key) {
			s.rest = true
		}
	}
}

// record is how the loop writes: a commit between two fault points, before-STEP
// and after-STEP.
func (u *uniter) record(ctx context.Context, step string, f func(tx *state.Tx) error) error {
	u.fault("before-" + step)
	err := u.Update(ctx, f)
	if err == nil {
		u.fault("after-" + step)
	}
	return err
}

// recording is record as what commits several batches of one step.
func (u *uniter) recording(step string) state.Updater {
	return func(ctx context.Context, f func(tx *state.Tx) error) error { return u.record(ctx, step, f) }
}

// commit writes: what the loop has written it need not read.
func (u *uniter) commit(ctx context.Context, f func(tx *state.Tx) error) error {
	var wrote state.Writes
	err := u.announced(ctx, func(tx *state.Tx) error {
		err := f(tx)
		wrote = tx.Writes()
		return err
	})
	if err != nil {
		u.sight.forget()
		return err
	}
	u.sight.wrote(u.Unit, wrote)
	return nil
}

// read takes a snapshot.
func (u *uniter) read(ctx context.Context) (Snapshot, error) {
	keys, lost, err := u.watch.Take()
	if lost {
		u.sight.forget()
	}
	u.sight.told(keys)
	if err == nil {
		err = u.look(ctx)
	}
	if err != nil {
		u.sight.forget()
		return Snapshot{}, err
	}
	s := u.sight.snap
	s.Now, s.LastHook, s.Running = now(), u.lastHook, u.hook != nil
	if s.Running {
		s.Cut, s.Begun = u.hook.cut != "", u.hook.op.Started
	}
	return s, nil
}

// look reads what is not known, and watches from there on what is known then.
func (u *uniter) look(ctx context.Context) error {
	if u.sight.known && !u.sight.rest && len(u.sight.members) == 0 {
		return nil
	}
	var revision int64
	err := u.State.View(ctx, func(v *state.View) (err error) {
		if err := u.sight.read(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil || u.sight.snap.Gone {
		return err
	}
	return u.follow(ctx, u.sight.snap, revision)
}

// fewMembers are read one by one; of more, all are.
const fewMembers = 16

// read brings the snapshot up to date.
func (s *sight) read(v *state.View, unit string) (err error) {
	fresh := s.snap
	switch {
	case !s.known:
		fresh, err = snapshot(v, unit)
	case s.rest:
		fresh, err = s.readRest(v, unit)
	}
	switch {
	case err != nil || fresh.Gone:
	case len(s.members) > fewMembers:
		err = fresh.readMembers(v)
	default:
		for _, m := range s.members {
			err = errors.Join(err, fresh.readMember(v, m))
		}
	}
	if err != nil {
		return err // the view may call again, and what was read in part is no sight
	}
	*s = sight{known: true, snap: fresh}
	return nil
}

// readRest reads all but the unit's own records, and but the members, unless
// there is a relation that is not known or one less: that one's members were not
// watched, or will not be.
func (s *sight) readRest(v *state.View, unit string) (Snapshot, error) {
	fresh, err := around(v, unit, s.snap.Uniter, s.snap.Hooks)
	if err != nil || fresh.Gone {
		return fresh, err
	}
	if !slices.Equal(sortedKeys(fresh.Relations), sortedKeys(s.snap.Relations)) {
		return fresh, fresh.readMembers(v)
	}
	for id, r := range fresh.Relations {
		r.Members = s.snap.Relations[id].Members
		fresh.Relations[id] = r
	}
	return fresh, nil
}
