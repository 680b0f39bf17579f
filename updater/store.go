// Package updater is what all sides of an update of boot servers share: its keys in the store,
// how they are opened, read, followed and changed, and their backup. Packages leader and worker
// decide and act on them; operators' commands read and write them. It decides nothing, and
// imports neither side.
//
// Boot servers are brought to a new release in lock-step. The promises, which hold whatever is
// killed, cut off or late:
//
//   - no server runs a step before all servers of the request have come to it;
//   - a step is run by workers of the request's version only;
//   - of a rolling component, at most one server's member is down for an update;
//   - once a request is stopped, no worker that hears of it begins a step;
//   - each attempt at a request ends in exactly one report.
package updater

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater/keys"
)

// ErrNoReceiver means that no place for alerts is configured.
var ErrNoReceiver = errors.New("no place for alerts is configured")

// ErrNotInitialised is the error of OpenStore where InitStore was not called.
var ErrNotInitialised = errors.New("the store was not initialised")

// formatNumber is the format of the keys, in keys.Format.
const formatNumber = 1

// OpenStore opens the updater's keys at the URL. It returns ErrNotInitialised if there are none, and a
// different error if their format is unknown.
func OpenStore(ctx context.Context, url string) (*keyspace.Space, error) {
	space, err := keyspace.Open(ctx, url, keys.DefaultPrefix)
	if errors.Is(err, keyspace.ErrNoStore) {
		return nil, fmt.Errorf("cannot open %q: %w", url, ErrNotInitialised)
	}
	if err != nil {
		return nil, err
	}
	if err := space.View(ctx, checkFormat); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open %q: %w", url, err), space.Close())
	}

	return space, nil
}

func checkFormat(v *keyspace.View) error {
	found, err := ReadKey[int](v, keys.Format)
	switch {
	case err != nil:
		return err
	case found == nil:
		return ErrNotInitialised
	case *found != formatNumber:
		return fmt.Errorf("its format is %d, and this neco knows %d only", *found, formatNumber)
	}

	return nil
}

// InitStore creates the updater's keys at the URL, and the store if there is none. made is false if the
// keys were there already.
func InitStore(ctx context.Context, url string) (made bool, err error) {
	space, err := keyspace.Create(ctx, url, keys.DefaultPrefix)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, space.Close()) }()

	err = space.Update(ctx, func(tx *keyspace.Tx) error {
		made = false
		if err := checkFormat(tx.View); !errors.Is(err, ErrNotInitialised) {
			return err
		}
		made = true
		return tx.Put(keys.Format, formatNumber)
	})

	return made, err
}

// RetryInterval is how long whatever failed is left alone.
const RetryInterval = time.Second

// ShutdownTimeout bounds what a process that is told to end still does, also with a store
// that does not answer.
const ShutdownTimeout = 5 * time.Second

// AwaitRetry waits for a moment after a fault of the store. It returns an error that a retry cannot mend.
func AwaitRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case IsStoreGone(err):
		return err
	}

	slog.Warn("the store does not answer as it should; trying again", "error", err)
	_ = backoff.Sleep(ctx, RetryInterval)
	return ctx.Err()
}

// IsStoreGone reports whether no retry helps, since the store was deleted or closed.
func IsStoreGone(err error) bool {
	return errors.Is(err, keyspace.ErrStoreGone) || errors.Is(err, keyspace.ErrClosed)
}
