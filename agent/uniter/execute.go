package uniter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/uniter/decide"
	"bijou/hookenv/tools"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/unitdir"
)

// now returns the current time in UTC, as the records contain it.
func now() time.Time { return time.Now().UTC() }

// deployCharm puts the charm into the unit's directory. It commits before it begins, and again once the charm
// is in place. If the agent dies in between, the next agent cannot know which charm the directory contains,
// and deploys a charm again.
func (u *uniter) deployCharm(ctx context.Context, url string) error {
	err := u.commitStep(ctx, "deploy", func(tx *state.Tx) error {
		return tx.ChangeWorkflow(u.Unit, func(w *state.Workflow) { w.Deploying = url })
	})
	if err != nil {
		return err
	}
	if err := unitdir.PutCharm(ctx, u.State, url, u.Folder, toolNames(), u.faultPoint); err != nil {
		return err
	}
	u.Log.Info("charm deployed", "charm", url)

	return u.commitStep(ctx, "deployed", func(tx *state.Tx) error {
		if err := tx.SetUnitCharm(u.Unit, url); err != nil {
			return err
		}
		return tx.ChangeWorkflow(u.Unit, func(w *state.Workflow) { *w = decide.WithCharm(*w, url) })
	})
}

// toolNames returns the names of all hook tools.
func toolNames() []string {
	var names []string
	for _, t := range tools.All() {
		names = append(names, t.Name)
	}
	return names
}

// enqueue commits the arrivals to the unit's queue.
func (u *uniter) enqueue(ctx context.Context, arrivals []hook.Arrival) error {
	return u.commitStep(ctx, "enqueue", func(tx *state.Tx) error { return recordArrivals(tx, u.Unit, arrivals) })
}

// recordArrivals adds the arrivals to the unit's queue in tx, and removes the entries that the arrivals mark to
// be forgotten. It does not check that the queue is unchanged since the decision, since only the unit's loop
// writes the queue.
func recordArrivals(tx *state.Tx, unit string, arrivals []hook.Arrival) error {
	if len(arrivals) == 0 {
		return nil
	}
	if err := prefetchArrivals(tx, unit, arrivals); err != nil {
		return err
	}

	for _, a := range arrivals {
		if a.Forget {
			tx.RemoveMember(unit, a.Relation, a.Member)
			continue
		}
		if err := putArrival(tx, unit, a); err != nil {
			return err
		}
	}

	return tx.ChangeWorkflow(unit, func(w *state.Workflow) {
		w.NextPlace = decide.NextPlaceAfter(arrivals, w.NextPlace)
	})
}

// prefetchArrivals reads, in one round trip, the unit's workflow and the queue's entries that putArrival reads
// again when it changes them. New members have no entries, and a removal reads none. If there are only such
// arrivals, prefetchArrivals reads nothing.
func prefetchArrivals(tx *state.Tx, unit string, arrivals []hook.Arrival) error {
	known := map[int][]string{}
	for _, a := range arrivals {
		if a.Known && !a.Forget {
			known[a.Relation] = append(known[a.Relation], a.Member)
		}
	}

	if len(known) == 0 {
		return nil
	}

	return tx.PrefetchMembers(unit, known)
}

// putArrival writes the member's new state to its entry in the queue, or adds an entry for a new member.
func putArrival(tx *state.Tx, unit string, a hook.Arrival) error {
	if a.Known {
		return tx.RewriteMember(unit, a.Relation, a.Member, a.State)
	}
	return tx.PutMember(unit, a.Relation, a.Member, a.State)
}

// enterRelation adds the unit to the members of the relation, and adds the unit's record of the relation. If the
// relation or the unit is dying or gone, it returns nil and changes nothing.
func (u *uniter) enterRelation(ctx context.Context, r hook.Relation, hooks decide.CharmHooks) error {
	err := u.commitStep(ctx, "enter", func(tx *state.Tx) error {
		settings, err := u.initialSettings(tx, hooks.Dialect)
		if err != nil {
			return err
		}
		if err := tx.EnterRelation(r.ID, u.Unit, settings); err != nil {
			return err
		}

		return tx.PutRelationState(u.Unit, r.ID, state.RelationState{
			State:         state.RelationUp,
			Name:          r.Name,
			RemoteService: r.RemoteService,
			Peer:          r.Peer,
			CreatedOwed:   hooks.HasCreated(r.Name),
		})
	})
	if errors.Is(err, state.ErrDead) || errors.Is(err, state.ErrNotFound) {
		u.Log.Debug("a relation was removed before the unit had joined it", "relation", r.ID)
		return nil
	}

	return err
}

// initialSettings returns the unit's settings in a relation before any hook has run there. The settings
// contain the unit's private address. They are nil if the unit has no address.
func (u *uniter) initialSettings(tx *state.Tx, d charm.Dialect) (map[string]string, error) {
	const public = false
	address, err := tx.UnitAddress(u.Unit, public)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, nil
	}

	settings := map[string]string{"private-address": address}
	if d == charm.Modern {
		settings["ingress-address"] = address
		settings["egress-subnets"] = hookctx.HostSubnet(address)
	}

	return settings, nil
}

// resolveFailure records that the failed hook of the relation counts as done, as the operator has requested.
// For [state.NoRelation] this is the failed hook of the unit itself. If there is no failed hook,
// resolveFailure only clears the request.
func (u *uniter) resolveFailure(ctx context.Context, relation int) error {
	var failure *state.Failure
	err := u.commitStep(ctx, "resolve", func(tx *state.Tx) (err error) {
		if failure, err = readFailure(tx, u.Unit, relation); err != nil {
			return err
		}
		if failure == nil {
			return tx.ClearResolved(u.Unit, relation)
		}

		// The failed hook does not run again, so the version that the records already contain stays.
		version, err := recordedVersion(tx, u.Unit, failure.Hook)
		if err != nil {
			return err
		}
		if err := recordDone(tx, u.Unit, failure.Hook, version); err != nil {
			return err
		}

		// If another charm was deployed since upgrade-charm failed, upgrade-charm must still run for that charm.
		return keepUpgradeOwed(tx, u.Unit, *failure)
	})
	if err != nil {
		return err
	}

	if failure != nil {
		u.output.Write("INFO", failure.Hook.Name,
			fmt.Sprintf("hook %q counts as done: resolved by the operator", failure.Hook.Name))
	}

	return nil
}

// keepUpgradeOwed records that upgrade-charm must run again, if f is the failed upgrade-charm hook of a charm
// that the unit no longer has. In that case an operator has forced another charm since the failure.
func keepUpgradeOwed(tx *state.Tx, unit string, f state.Failure) error {
	w, err := tx.Workflow(unit)
	if err != nil {
		return err
	}
	if f.Hook.Kind != hook.UpgradeCharm || f.Charm == w.Charm {
		return nil
	}

	w.UpgradeOwed = true
	return tx.PutWorkflow(unit, w)
}

// readFailure returns the failure of a hook of the relation, or of the unit itself for [state.NoRelation]. It
// returns nil if no hook has failed.
func readFailure(tx *state.Tx, unit string, relation int) (*state.Failure, error) {
	if relation == state.NoRelation {
		w, err := tx.Workflow(unit)
		return w.Failure, err
	}
	rs, _, err := tx.RelationState(unit, relation)
	return rs.Failure, err
}

// recordedVersion returns the version of the hook's subject that the unit's records contain. The subject is the
// member's settings for a hook of a relation, the leader settings for leader-settings-changed, the resources for
// install and upgrade-charm, and otherwise the configuration. It returns 0 if another hook for the same member is
// queued.
func recordedVersion(tx *state.Tx, unit string, h state.Hook) (int64, error) {
	if h.Relation == state.NoRelation {
		w, err := tx.Workflow(unit)
		switch h.Kind {
		case hook.LeaderSettingsChanged:
			return w.LeaderVersion, err
		case hook.Install, hook.UpgradeCharm:
			return w.ResourcesVersion, err
		}

		return w.ConfigVersion, err
	}

	m, _, err := tx.MemberState(unit, h.Relation, hook.Member(h))
	if m.Pending != "" {
		return 0, err // m.Version belongs to the queued hook, which must still run
	}

	return m.Version, err
}

// leaveRelation removes the unit from the members of the relation, and removes the unit's records of the
// relation. If there are records of more than decide.MaxArrivals members, leaveRelation only removes that many of
// them, since the size of a transaction is limited, and the next step continues.
func (u *uniter) leaveRelation(ctx context.Context, relation int) error {
	return u.commitStep(ctx, "leave", func(tx *state.Tx) error {
		records, err := tx.Uniter(u.Unit)
		if err != nil {
			return err
		}

		members := slices.Sorted(maps.Keys(records.Members[relation]))
		n := min(len(members), decide.MaxArrivals)
		for _, member := range members[:n] {
			tx.RemoveMember(u.Unit, relation, member)
		}
		if n < len(members) {
			return nil
		}

		err = tx.DepartRelation(relation, u.Unit)
		if err != nil && !errors.Is(err, state.ErrNotFound) { // a forced removal can have removed the relation
			return err
		}

		return tx.RemoveRelationState(u.Unit, relation)
	})
}

// execute executes the step that was decided from the snapshot. Before a step that is not a hook, it releases the
// unit's ticket, unless a hook is in flight. finished is true once the unit is removed.
func (u *uniter) execute(ctx context.Context, next decide.Step, snap decide.Snapshot) (finished bool, err error) {
	_, isHook := next.(decide.RunHook)
	if !isHook && u.running == nil {
		u.releaseTicket()
	}

	switch s := next.(type) {
	case decide.Wait:
		return false, u.waitForChange(ctx, snap, s.Until, nil)
	case decide.DeployCharm:
		u.Loop.MarkUnbounded() // the watchdog ignores this step: unpacking a large charm can take a long time
		return false, u.deployCharm(ctx, s.URL)
	case decide.Enqueue:
		return false, u.enqueue(ctx, s.Arrivals)
	case decide.BindStorage:
		return false, u.bindStorage(ctx, s.Storage, snap.Environment.Name)
	case decide.ReleaseStorage:
		return false, u.releaseStorage(ctx, s.ID)
	case decide.EnterRelation:
		return false, u.enterRelation(ctx, s.Relation, snap.Hooks)
	case decide.RunHook:
		return false, u.runHook(ctx, s, snap)
	case decide.FailCrashed:
		return false, u.failCrashed(ctx, *snap.Uniter.Op)
	case decide.InterruptHook:
		u.running.endReason = s.Why
		u.running.interrupt()
		return false, nil
	case decide.Resolve:
		return false, u.resolveFailure(ctx, s.Relation)
	case decide.LeaveRelation:
		return false, u.leaveRelation(ctx, s.Relation)
	case decide.SetDying:
		return false, u.commitStep(ctx, "retire", func(tx *state.Tx) error {
			return tx.DestroyIfUnrelated(u.Unit)
		})
	case decide.Finish:
		if !snap.Gone {
			// Send the last log lines now, since the store accepts no lines for a unit that is gone.
			u.output.Close()
		}
		return u.removeUnit(ctx, snap)
	}

	panic("internal error: unknown step " + next.String())
}

// runHook begins a hook if the limiter has granted the unit a slot and the unit can take hookLock. Without a slot,
// it waits for the slot or a change. Without hookLock, it waits for a change, or until quiescedPoll has passed. It
// then returns nil, so that the loop decides again, unless ctx is done.
func (u *uniter) runHook(ctx context.Context, step decide.RunHook, snap decide.Snapshot) error {
	u.ticket = u.Limiter.request(u.ticket, snap.CountQueued())
	if !u.ticket.isGranted() {
		return u.waitForChange(ctx, snap, time.Time{}, u.ticket.granted)
	}

	canBegin, err := u.beginTurn() // takes hookLock, unless a backup of the unit's storage holds it
	if err != nil {
		u.releaseTicket()
		return err
	}
	if !canBegin {
		u.releaseTicket()
		return u.waitForChange(ctx, snap, snap.Now.Add(quiescedPoll), nil)
	}

	if err := u.beginHook(ctx, step, snap); err != nil {
		u.releaseTicket() // other units can use the slot until the retry
		return err
	}
	return nil
}

// removeUnit records that the unit is dead, and then removes the unit's directory. If the provisioner's
// leader must remove the unit's records, removeUnit waits for that. Otherwise it removes the records itself.
// If the unit's own record is already gone, it only removes the directory. In all cases it first kills the hook that
// a forced removal of the unit may have left running.
//
// gone is true once nothing of the unit is left. Otherwise the caller must call removeUnit again with the next
// snapshot.
func (u *uniter) removeUnit(ctx context.Context, snap decide.Snapshot) (gone bool, err error) {
	u.killHook()
	if snap.Gone {
		u.clearFolder()
		u.Log.Info("the unit has been removed")
		return true, nil
	}

	var mustRemoveRecords bool // the provisioner's leader does not remove the unit's records
	err = u.commitStep(ctx, "dead", func(tx *state.Tx) (err error) {
		mustRemoveRecords, err = tx.RetireUnit(u.Unit)
		return err
	})
	if err != nil {
		// If the unit is not found, the provisioner's leader has already removed it. The next snapshot shows
		// that.
		return false, state.IgnoreNotFound(err)
	}

	u.clearFolder()
	if mustRemoveRecords {
		return false, state.RemoveUnit(ctx, u.Update, u.Unit)
	}

	// Check again later: the provisioner's next leader may run an older binary, which does not remove dead
	// units.
	return false, u.waitForChange(ctx, snap, snap.Now.Add(retireInterval), nil)
}

// retireInterval is how often the agent of a dead unit checks whether it must remove the unit's records itself.
const retireInterval = 5 * time.Second

// clearFolder closes the unit's log and removes the unit's directory. It does so only once, and only logs a
// failure.
func (u *uniter) clearFolder() {
	if u.cleared {
		return
	}

	u.output.Close()
	u.faultPoint("before-clear")
	if err := u.Folder.RemoveAll(); err != nil {
		u.Log.Error("cannot remove the unit's directory", "error", err)
	}
	u.faultPoint("after-clear")
	u.cleared = true
}
