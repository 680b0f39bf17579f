package uniter

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookexec"
	"bijou/state"
	"bijou/state/charm"
)

func now() time.Time { return time.Now().UTC() }

// recover picks up what an agent that died has left: a hook that still runs is
// killed and has failed. It records that the agent has restarted.
func (u *uniter) recover(ctx context.Context) error {
	var op state.Op
	var inFlight bool
	err := u.State.View(ctx, func(v *state.View) (err error) {
		if op, inFlight, err = v.Op(u.Unit); err != nil {
			return err
		}
		u.runs, err = nextRun(v, u.Unit)
		return err
	})
	if err != nil {
		return err
	}
	if inFlight {
		killed, err := hookexec.Reap(u.Folder.record(), op.ID)
		if err != nil {
			return err
		}
		if killed {
			why := "the hook was running when its agent died"
			if hook.IsAsked(op.Hook) {
				why = whyKilled
			}
			if err := u.fail(ctx, op, pastOf(op, why)); err != nil && !errors.Is(err, errSettled) {
				return err
			}
			u.runs++
			u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, why))
			u.Log.Warn("killed a hook of an agent that died", "hook", op.Hook.Name)
		}
	}
	err = u.record(ctx, "recover", func(tx *state.Tx) error {
		w, err := tx.Workflow(u.Unit)
		if err != nil || w.State == "" {
			return err
		}
		w.Restarted = true
		return tx.PutWorkflow(u.Unit, w)
	})
	if errors.Is(err, state.ErrNotFound) {
		return nil // the unit is gone, as the first step will find
	}
	return err
}

// deploy records that it begins, unpacks the charm, and records that it is there.
// In between nobody knows which one is.
func (u *uniter) deploy(ctx context.Context, url string) error {
	err := u.record(ctx, "deploy", func(tx *state.Tx) error {
		w, err := tx.Workflow(u.Unit)
		if err != nil {
			return err
		}
		w.Deploying = url
		return tx.PutWorkflow(u.Unit, w)
	})
	if err == nil {
		err = deploy(ctx, u.State, url, u.Folder, u.fault)
	}
	if err != nil {
		return err
	}
	u.Log.Info("charm deployed", "charm", url)
	return u.record(ctx, "deployed", func(tx *state.Tx) error {
		w, err := tx.Workflow(u.Unit)
		if err != nil {
			return err
		}
		return errors.Join(tx.SetUnitCharm(u.Unit, url), tx.PutWorkflow(u.Unit, deployed(w, url)))
	})
}

// enqueue persists what has arrived. The loop is the only one who writes these
// records, so that they are still those of the snapshot.
func (u *uniter) enqueue(ctx context.Context, arrivals []hook.Arrival) error {
	return u.record(ctx, "enqueue", func(tx *state.Tx) error {
		w, err := tx.Workflow(u.Unit)
		if err != nil {
			return err
		}
		for _, a := range arrivals {
			if a.Forget {
				err = tx.RemoveMember(u.Unit, a.Relation, a.Member)
			} else {
				err = tx.PutMember(u.Unit, a.Relation, a.Member, a.State)
			}
			if err != nil {
				return err
			}
		}
		w.NextPlace = tailAfter(arrivals, w.NextPlace)
		return tx.PutWorkflow(u.Unit, w)
	})
}

// enter makes the unit a member of the relation. One that goes meanwhile is left
// alone. created says that its relation-created hook is owed.
func (u *uniter) enter(ctx context.Context, r hook.Relation, created bool) error {
	err := u.record(ctx, "enter", func(tx *state.Tx) error {
		settings, err := u.entry(tx)
		if err != nil {
			return err
		}
		if err := tx.EnterRelation(r.ID, u.Unit, settings); err != nil {
			return err
		}
		return tx.PutRelationState(u.Unit, r.ID, state.RelationState{
			State: state.RelationUp, Name: r.Name, RemoteService: r.RemoteService, Peer: r.Peer, CreatedOwed: created,
		})
	})
	if errors.Is(err, state.ErrDead) || errors.Is(err, state.ErrNotFound) {
		u.Log.Debug("a relation went before it was entered", "relation", r.ID)
		return nil
	}
	return err
}

// entry are the settings that a member begins with.
func (u *uniter) entry(tx *state.Tx) (map[string]string, error) {
	unit, err := tx.Unit(u.Unit)
	if err != nil {
		return nil, err
	}
	service, err := tx.Service(unit.Service)
	if err != nil {
		return nil, err
	}
	address, err := tx.UnitAddress(u.Unit, false)
	if err != nil || address == "" {
		return nil, err
	}
	settings := map[string]string{"private-address": address}
	if service.Dialect == charm.Modern {
		settings["ingress-address"] = address
		settings["egress-subnets"] = subnet(address)
	}
	return settings, nil
}

// subnet is the network of one address alone; a name is its own.
func subnet(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return netip.PrefixFrom(ip, ip.BitLen()).String()
}

// retire makes a subordinate's unit dying, unless a new relation holds it.
func (u *uniter) retire(ctx context.Context) error {
	return u.record(ctx, "retire", func(tx *state.Tx) error { return tx.RetireSubordinate(u.Unit) })
}

// resolve counts a failed hook as done, as the operator wishes.
func (u *uniter) resolve(ctx context.Context, relation int) error {
	var f *state.Failure
	err := u.record(ctx, "resolve", func(tx *state.Tx) (err error) {
		if f, err = failure(tx, u.Unit, relation); err != nil {
			return err
		}
		if f == nil {
			return tx.ClearResolved(u.Unit, relation)
		}
		version, err := seen(tx, u.Unit, f.Hook)
		if err != nil {
			return err
		}
		if err := count(tx, u.Unit, f.Hook, version); err != nil {
			return err
		}
		return stillOwed(tx, u.Unit, *f)
	})
	if err == nil && f != nil {
		u.output.Write("INFO", f.Hook.Name, fmt.Sprintf("hook %q counts as done: resolved by the operator", f.Hook.Name))
	}
	return err
}

// stillOwed keeps the upgrade-charm of a newer charm, which was forced upon a
// unit while that of an older one had failed.
func stillOwed(tx *state.Tx, unit string, f state.Failure) error {
	w, err := tx.Workflow(unit)
	if err != nil || f.Hook.Kind != hook.UpgradeCharm || f.Charm == w.Charm {
		return err
	}
	w.UpgradeOwed = true
	return tx.PutWorkflow(unit, w)
}

// failure reads why a unit or its relation is in an error state; nil if it is not.
func failure(tx *state.Tx, unit string, relation int) (*state.Failure, error) {
	if relation == state.NoRelation {
		w, err := tx.Workflow(unit)
		return w.Failure, err
	}
	rs, _, err := tx.RelationState(unit, relation)
	return rs.Failure, err
}

// seen is the version of what a failed hook was about, as was recorded when it ran.
func seen(tx *state.Tx, unit string, h state.Hook) (int64, error) {
	if h.Relation == state.NoRelation {
		w, err := tx.Workflow(unit)
		if h.Kind == hook.LeaderSettingsChanged {
			return w.LeaderVersion, err
		}
		return w.ConfigVersion, err
	}
	m, _, err := tx.MemberState(unit, h.Relation, hook.Member(h))
	if m.Pending != "" {
		return 0, err // its version is that of what is queued
	}
	return m.Version, err
}

// leave ends the membership, and with it all that was recorded of the relation.
// What one transaction does not hold is left for the next step.
func (u *uniter) leave(ctx context.Context, relation int) error {
	return u.record(ctx, "leave", func(tx *state.Tx) error {
		records, err := tx.Uniter(u.Unit)
		if err != nil {
			return err
		}
		members := sortedKeys(records.Members[relation])
		for _, member := range members[:min(len(members), maxArrivals)] {
			if err := tx.RemoveMember(u.Unit, relation, member); err != nil {
				return err
			}
		}
		if len(members) > maxArrivals {
			return nil
		}
		err = tx.LeaveRelation(relation, u.Unit)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		return tx.RemoveRelationState(u.Unit, relation)
	})
}
