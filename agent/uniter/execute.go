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

func now() time.Time { return time.Now().UTC() }

// deployCharm puts the charm into the unit's directory. It records when it begins and when it is done. If the
// agent dies between these records, they do not show which charm the directory contains.
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

func toolNames() []string {
	var names []string
	for _, t := range tools.All() {
		names = append(names, t.Name)
	}
	return names
}

func (u *uniter) enqueue(ctx context.Context, arrivals []hook.Arrival) error {
	return u.commitStep(ctx, "enqueue", func(tx *state.Tx) error { return recordArrivals(tx, u.Unit, arrivals) })
}

// recordArrivals adds new hooks to the unit's queue. It does not read the queue again, since only the unit's
// loop writes it.
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

// prefetchArrivals reads the known entries of the queue in one round trip. It skips new entries, so that an
// arriving unit needs no round trip.
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

func putArrival(tx *state.Tx, unit string, a hook.Arrival) error {
	if a.Known {
		return tx.RewriteMember(unit, a.Relation, a.Member, a.State)
	}
	return tx.PutMember(unit, a.Relation, a.Member, a.State)
}

// enterRelation adds the unit to the members of the relation. It returns nil if the relation has been
// removed.
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

// initialSettings returns the unit's settings in a relation before any hook has run there. They contain the
// unit's addresses.
func (u *uniter) initialSettings(tx *state.Tx, d charm.Dialect) (map[string]string, error) {
	const public = false
	address, err := tx.UnitAddress(u.Unit, public)
	if err != nil || address == "" {
		return nil, err
	}

	settings := map[string]string{"private-address": address}
	if d == charm.Modern {
		settings["ingress-address"] = address
		settings["egress-subnets"] = hookctx.HostSubnet(address)
	}

	return settings, nil
}

// resolveFailure records that the failed hook counts as done, as the operator has requested. If there is no
// failed hook it only clears the request.
func (u *uniter) resolveFailure(ctx context.Context, relation int) error {
	var f *state.Failure
	err := u.commitStep(ctx, "resolve", func(tx *state.Tx) (err error) {
		if f, err = readFailure(tx, u.Unit, relation); err != nil {
			return err
		}
		if f == nil {
			return tx.ClearResolved(u.Unit, relation)
		}

		version, err := recordedVersion(tx, u.Unit, f.Hook)
		if err != nil {
			return err
		}
		if err := recordDone(tx, u.Unit, f.Hook, version); err != nil {
			return err
		}

		return keepUpgradeOwed(tx, u.Unit, *f)
	})
	if err != nil {
		return err
	}

	if f != nil {
		u.output.Write("INFO", f.Hook.Name,
			fmt.Sprintf("hook %q counts as done: resolved by the operator", f.Hook.Name))
	}

	return nil
}

// keepUpgradeOwed records that upgrade-charm must run again, if f is the failed upgrade-charm of a charm that
// the unit no longer has. An operator has forced a newer charm since that failure.
func keepUpgradeOwed(tx *state.Tx, unit string, f state.Failure) error {
	w, err := tx.Workflow(unit)
	if err != nil || f.Hook.Kind != hook.UpgradeCharm || f.Charm == w.Charm {
		return err
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

// recordedVersion returns the version of the hook's subject in the unit's records. It returns 0 if a newer
// hook for the same member is queued.
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
		return 0, err // m.Version belongs to the queued hook
	}

	return m.Version, err
}

// leaveRelation leaves the relation and removes all records of it. If one transaction cannot hold them all,
// the next step removes the rest.
func (u *uniter) leaveRelation(ctx context.Context, relation int) error {
	return u.commitStep(ctx, "leave", func(tx *state.Tx) error {
		records, err := tx.Uniter(u.Unit)
		if err != nil {
			return err
		}

		members := slices.Sorted(maps.Keys(records.Members[relation]))
		for _, member := range members[:min(len(members), decide.MaxArrivals)] {
			tx.RemoveMember(u.Unit, relation, member)
		}
		if len(members) > decide.MaxArrivals {
			return nil
		}

		err = tx.DepartRelation(relation, u.Unit)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}

		return tx.RemoveRelationState(u.Unit, relation)
	})
}

// execute executes one step. finished is true once the unit is removed.
func (u *uniter) execute(ctx context.Context, next decide.Step, snap decide.Snapshot) (finished bool, err error) {
	if _, ok := next.(decide.RunHook); !ok && u.running == nil {
		u.releaseTicket()
	}

	switch s := next.(type) {
	case decide.Wait:
		return false, u.waitForChange(ctx, snap, s.Until, nil)
	case decide.DeployCharm:
		u.Loop.MarkUnbounded() // unpacking a large charm can take a long time
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
			// Send the last log lines now, since the store accepts none for a unit that is gone.
			u.output.Close()
		}
		return u.removeUnit(ctx, snap)
	}

	panic("internal error: unknown step " + next.String())
}

// runHook begins a hook once it has a ticket of the limiter and its turn on this host. Until it has both,
// runHook waits for a change instead, and the loop decides again.
func (u *uniter) runHook(ctx context.Context, step decide.RunHook, snap decide.Snapshot) error {
	u.ticket = u.Limiter.request(u.ticket, snap.CountQueued())
	if !u.ticket.isGranted() {
		return u.waitForChange(ctx, snap, time.Time{}, u.ticket.granted)
	}

	may, err := u.beginTurn()
	if err != nil {
		u.releaseTicket()
		return err
	}
	if !may {
		u.releaseTicket()
		return u.waitForChange(ctx, snap, snap.Now.Add(quiescedPoll), nil)
	}

	err = u.beginHook(ctx, step, snap)
	if err != nil {
		u.releaseTicket() // other units can use the slot until the retry
	}
	return err
}

// removeUnit records that the unit is dead, and then removes its directory. It also removes the unit's
// records, unless the provisioner's leader must do so, for which it waits. It kills the hook that a forced
// removal of the unit may have left running. It returns gone true once nothing of the unit is left. Otherwise
// it must be called again with the next snapshot.
func (u *uniter) removeUnit(ctx context.Context, snap decide.Snapshot) (gone bool, err error) {
	u.killHook()
	if snap.Gone {
		u.clearFolder()
		u.Log.Info("the unit has been removed")
		return true, nil
	}

	var mustRemove bool
	err = u.commitStep(ctx, "dead", func(tx *state.Tx) (err error) {
		mustRemove, err = tx.RetireUnit(u.Unit)
		return err
	})
	if err != nil {
		// If the unit is not found, the leader has already removed it, as the next snapshot will show.
		return false, state.IgnoreNotFound(err)
	}

	u.clearFolder()
	if mustRemove {
		return false, state.RemoveUnit(ctx, u.Update, u.Unit)
	}

	// Check again later, since the next leader may run an older binary, which does not remove dead units.
	return false, u.waitForChange(ctx, snap, snap.Now.Add(retireInterval), nil)
}

// retireInterval is the interval at which a dead unit checks whether its records must still be removed.
const retireInterval = 5 * time.Second

// clearFolder closes the unit's log and removes the unit's directory, once. It only logs a failure.
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
