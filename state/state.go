package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/store"
)

// formatVersion is what this code reads and writes. An older one would be converted
// on Open; there is none yet.
const formatVersion = 1

type formatDoc struct {
	Format int `json:"format"`
}

// State is one opened environment. Its methods may be called from several
// goroutines.
type State struct {
	store store.Store
}

// Open opens the environment at the URL: "sqlite:PATH". It never creates one.
// ErrNoStore: nothing is there; ErrFormat: what is there is no environment, or
// one of another format.
func Open(ctx context.Context, url string) (*State, error) {
	st, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	s := &State{store: st}
	if err := s.View(ctx, checkFormat); err != nil {
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
	st, err := createStore(ctx, url)
	if err != nil {
		return err
	}
	s := &State{store: st}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.initialise(ctx, env)
}

// Close ends the sessions and watchers of this State and frees its store. It is idempotent.
func (s *State) Close() error { return s.store.Close() }

// initialise writes what every environment begins with.
func (s *State) initialise(ctx context.Context, env Environment) error {
	return s.Update(ctx, func(tx *Tx) error {
		if _, ok, err := tx.get(formatKey); err != nil || ok {
			return errors.Join(err, existsIf(ok))
		}
		if err := tx.checkNotPartial(); err != nil {
			return err
		}
		machine := Machine{
			Series: env.DefaultSeries, Life: Alive, Jobs: []string{JobManage, JobUnits},
			InstanceID: "localhost", Status: MachinePending, Constraints: env.Constraints,
		}
		return errors.Join(
			tx.put(formatKey, formatDoc{formatVersion}),
			tx.put(environmentKey, env),
			tx.put(machineCounter, 1),
			tx.put(machineKey("0"), machine),
		)
	})
}

func existsIf(ok bool) error {
	if ok {
		return refuse(ErrStoreExists, "there is an environment already")
	}
	return nil
}

// checkFormat refuses what this code would misread, and stores that an environment
// has left, or has not wholly come to.
func checkFormat(v *View) error {
	if err := v.checkNotMoved(); err != nil {
		return err
	}
	doc, ok, err := load[formatDoc](v, formatKey)
	if err == nil && !ok {
		err = v.checkNotPartial()
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(ErrFormat, "it holds no bijou environment")
	case doc.Format != formatVersion:
		return refuse(ErrFormat, "its format is %d, and this bijou knows %d only: use the bijou that wrote it, or a newer one", doc.Format, formatVersion)
	}
	return nil
}

// checkNotMoved is ErrMoved if the environment has left this store.
func (v *View) checkNotMoved() error {
	value, ok, err := v.snap.Get(v.ctx, movedKey)
	if err != nil || !ok {
		return err
	}
	to, err := decode[movedRecord](value)
	if err != nil {
		return err
	}
	return refuse(ErrMoved, "the environment has moved to %q", to.To)
}

// checkNotPartial is ErrFormat if a migration or a restoration to this store was not finished.
func (v *View) checkNotPartial() error {
	left, ok, err := load[partialCopy](v, partialCopyKey)
	if err != nil || !ok {
		return err
	}
	return refuse(ErrFormat, "it holds a part only of what is to be copied from %q", left.From)
}
