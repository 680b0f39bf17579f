package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/state/store"
)

// storeError returns the store's own error for one of etcd's client, or one that says in
// plain words what it means. Others pass.
func (d *db) storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if closed := d.CheckUsable(context.Background()); closed != nil {
		return closed
	}
	if d.auth.isRefused() && (ctx.Err() != nil || isTransient(err) || errors.Is(err, rpctypes.ErrAuthFailed)) {
		return mapKnownError(rpctypes.ErrAuthFailed)
	}
	if ctx.Err() != nil || isTransient(err) {
		return unreachableError(ctx, d.config, err)
	}
	return mapKnownError(err)
}

func mapKnownError(err error) error {
	for _, m := range knownErrors() {
		if errors.Is(err, m.etcd) {
			return m.store
		}
	}
	return err
}

type knownError struct{ etcd, store error }

func knownErrors() []knownError {
	return []knownError{
		{rpctypes.ErrCompacted, store.ErrHistoryLost},
		{rpctypes.ErrLeaseNotFound, store.ErrLeaseLost},
		{rpctypes.ErrTooManyOps, fmt.Errorf("%w: etcd runs with a --max-txn-ops below its default of 128", store.ErrTooLarge)},
		{rpctypes.ErrRequestTooLarge, fmt.Errorf("%w: etcd runs with a --max-request-bytes below its default of 1.5 MiB", store.ErrTooLarge)},
		{rpctypes.ErrNoSpace, fmt.Errorf("etcd's database is full: compact it, defragment it, then disarm its alarm: %w", rpctypes.ErrNoSpace)},
		{rpctypes.ErrPermissionDenied, fmt.Errorf("etcd's user may not read and write the whole prefix: %w", rpctypes.ErrPermissionDenied)},
		{rpctypes.ErrAuthFailed, fmt.Errorf("etcd refuses the login: wrong user or password: %w", rpctypes.ErrAuthFailed)},
		{rpctypes.ErrUserEmpty, fmt.Errorf("etcd wants a user: give ?user=NAME&password-file=FILE: %w", rpctypes.ErrUserEmpty)},
	}
}

// isTransient reports whether the same call may succeed a moment later, or on another
// member. Of a commit it leaves open what has happened.
func isTransient(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	switch grpcCode(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return true
	}
	return errors.Is(err, rpctypes.ErrTooManyRequests) || isUnknownToken(err)
}

// isUnknownToken reports whether a member did not know the log-in's token, or not yet: each
// learns of it in its turn, and one that is behind does so later. Nothing was done.
func isUnknownToken(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

func grpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

func unreachableError(ctx context.Context, p config, err error) error {
	text := status.Convert(err).Message() // without gRPC's words around it
	why := fmt.Sprintf("etcd at %s does not answer: %s", p.endpointList(), text)
	if strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") {
		why = fmt.Sprintf("no connection to etcd at %s for its certificates: %s", p.endpointList(), text)
	}
	if ctx.Err() != nil {
		return store.OverdueError(ctx, why)
	}
	return store.AwayError(why, err)
}
