package state

import (
	"context"
	"errors"
	"fmt"
)

// ForceRemoveUnit removes a unit at once, in whatever state it is, and its
// subordinates with it. Its agent, if there is one, ends what runs and cleans up;
// no hook is run any more. It works in batches; call it again if it was
// interrupted. ErrNotFound.
func (s *State) ForceRemoveUnit(ctx context.Context, name string) error {
	var u Unit
	err := s.Update(ctx, func(tx *Tx) (err error) {
		if u, err = tx.Unit(name); err != nil {
			return err
		}
		if untouched, err := tx.isUntouched(u); err != nil || untouched {
			return errors.Join(err, tx.DestroyUnit(name))
		}
		return tx.changeUnit(name, func(u *Unit) { u.Life = Dead })
	})
	if err != nil {
		return err
	}
	for _, sub := range u.Subordinates {
		if err := s.ForceRemoveUnit(ctx, sub); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return RemoveUnit(ctx, s.Update, name)
}

// ForceDestroyRelation removes a relation at once. Its members still run their
// last hooks of it, as far as they have agents. It works in batches. ErrNotFound;
// ErrInUse for a peer relation.
func (s *State) ForceDestroyRelation(ctx context.Context, id int) error {
	if err := s.Update(ctx, func(tx *Tx) error { return tx.DestroyRelation(id) }); err != nil {
		return err
	}
	return s.removeMembers(ctx, id)
}

func (s *State) removeMembers(ctx context.Context, id int) error {
	members, err := Read(ctx, s, func(v *View) ([]Member, error) { return v.Members(id) })
	if err != nil {
		return err
	}
	return inBatches(ctx, s.Update, members, func(tx *Tx, m Member) error { return tx.LeaveRelation(id, m.Unit) })
}

// ForceDestroyService removes a service at once with its units and relations, as
// ForceRemoveUnit and ForceDestroyRelation do. ErrNotFound.
func (s *State) ForceDestroyService(ctx context.Context, name string) error {
	var relations []int
	var units []string
	err := s.Update(ctx, func(tx *Tx) (err error) {
		relations, units, err = tx.markServiceDying(name)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.forceDestroyParts(ctx, relations, units); err != nil {
		return fmt.Errorf("cannot destroy service %q: %w", name, err)
	}
	return s.Update(ctx, func(tx *Tx) error { return tx.removeServiceIfDone(name) })
}

func (s *State) forceDestroyParts(ctx context.Context, relations []int, units []string) error {
	for _, unit := range units {
		if err := s.ForceRemoveUnit(ctx, unit); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	err := inBatches(ctx, s.Update, relations, func(tx *Tx, id int) error { return tx.destroyRelation(id) })
	if err != nil {
		return err
	}
	for _, id := range relations {
		if err := s.removeMembers(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
