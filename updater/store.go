// Package updater opens, reads, watches, changes and backs up the updater's keys in the store. The leader,
// the workers and the operators' commands all use it. It makes no decisions: packages decide, leader and
// worker do.
//
// Boot servers are updated to a new release in lock-step. These guarantees hold even if processes are
// killed, delayed or cut off from the store:
//
//   - No server runs a step before all servers of the request have reached it.
//   - Only workers of the request's version run a step.
//   - At any time, the member of a rolling component is down for an update on at most one server.
//   - Once a request is stopped, no worker that has noticed the stop begins a step.
//   - Each attempt at a request ends in exactly one report.
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

// ErrNoReceiver is returned if no destination for alerts is configured.
var ErrNoReceiver = errors.New("no destination for alerts is configured")

// ErrNotInitialised is returned by [OpenStore] if [InitStore] was never called for the store.
var ErrNotInitialised = errors.New("the store has not been initialised")

// formatNumber is the format of the keys. It is stored in keys.Format.
const formatNumber = 1

// OpenStore opens the updater's keys at the URL. It returns ErrNotInitialised if there are no keys, and a
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

// checkFormat returns ErrNotInitialised if the store has no format, and a different error if this program does
// not support the format.
func checkFormat(v *keyspace.View) error {
	found, err := ReadKey[int](v, keys.Format)
	switch {
	case err != nil:
		return err
	case found == nil:
		return ErrNotInitialised
	case *found != formatNumber:
		return fmt.Errorf("the store has format %d, but this neco supports only format %d", *found, formatNumber)
	}

	return nil
}

// InitStore creates the updater's keys at the URL, and the store if it does not exist. made is false if the
// keys already exist. InitStore returns an error if they exist in a format that this program does not support.
func InitStore(ctx context.Context, url string) (made bool, err error) {
	space, err := keyspace.Create(ctx, url, keys.DefaultPrefix)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, space.Close()) }()

	err = space.Update(ctx, func(tx *keyspace.Tx) error {
		// After a conflict, this function runs again.
		made = false
		// Without an error, the keys already exist.
		if err := checkFormat(tx.View); !errors.Is(err, ErrNotInitialised) {
			return err
		}
		made = true
		return tx.Put(keys.Format, formatNumber)
	})

	return made, err
}

// RetryInterval is the wait before a failed operation is tried again.
const RetryInterval = time.Second

// ShutdownTimeout limits the clean-up of a process that is shutting down, so that the process also ends if the
// store does not answer.
const ShutdownTimeout = 5 * time.Second

// AwaitRetry waits for RetryInterval after an error from the store. It returns err at once if the store was
// deleted or closed, so that no retry can help. If ctx is done, even before the call, it returns ctx's error.
func AwaitRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case IsStoreGone(err):
		return err
	}

	slog.Warn("the store gives no valid answer; trying again", "error", err)
	_ = backoff.Sleep(ctx, RetryInterval)
	return ctx.Err()
}

// IsStoreGone reports whether the store was deleted or closed, so that no retry can help.
func IsStoreGone(err error) bool {
	return errors.Is(err, keyspace.ErrStoreGone) || errors.Is(err, keyspace.ErrClosed)
}
