package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/storeurl"
)

// State is one opened environment. Its methods may be called from several goroutines.
type State struct{ space *keyspace.Space }

// Open opens the environment at the URL: "sqlite:PATH". It never creates one.
// ErrNoStore: nothing is there; ErrFormat: it holds no environment, or one of another
// format.
func Open(ctx context.Context, url string) (*State, error) {
	st, err := storeurl.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	s := OpenIn(st)
	if err := s.View(ctx, CheckFormat); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open %q: %w", url, err), st.Close())
	}
	return s, nil
}

// Create makes an environment at the URL, with machine 0, and closes it. A store
// that is there already is refused with ErrStoreExists; one that was left empty
// by a Create that died half-way is taken.
func Create(ctx context.Context, url string, env Environment) (err error) {
	if err := env.validate(); err != nil {
		return fmt.Errorf("cannot create environment: %w", err)
	}
	st, err := storeurl.Create(ctx, url)
	if err != nil {
		return err
	}
	s := OpenIn(st)
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.initialise(ctx, env)
}

// Close ends the sessions and watchers of this State and frees its store. It is idempotent.
func (s *State) Close() error { return s.space.Close() }

// initialise writes what every environment begins with.
func (s *State) initialise(ctx context.Context, env Environment) error {
	return s.Update(ctx, func(tx *Tx) error {
		if _, ok, err := tx.keys.Get(keys.Format); err != nil || ok {
			return cmp.Or(err, refuse(ErrStoreExists, "there is an environment already"))
		}
		if err := tx.checkNotPartial(); err != nil {
			return err
		}
		machine := Machine{
			Series: env.DefaultSeries, Life: Alive, Jobs: []string{JobManage, JobUnits},
			InstanceID: "localhost", Status: MachinePending, Constraints: env.Constraints,
		}
		return errors.Join(
			tx.keys.Put(keys.Format, FormatRecord{FormatVersion}),
			tx.keys.Put(keys.Environment, env),
			tx.keys.Put(keys.MachineCounter, 1),
			tx.keys.Put(keys.Machine("0"), machine),
		)
	})
}
