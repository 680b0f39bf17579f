package protocol

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/state/secret"
	"bijou/state/store"
)

// failure is one of the stores' errors as a status. gRPC makes statuses of some codes by itself:
// Unavailable where a connection breaks, and ResourceExhausted where a message is too large, which
// mean the same here.
type failure struct {
	err  error
	code codes.Code
}

func failures() []failure {
	return []failure{
		{store.ErrConflict, codes.Aborted},
		{store.ErrTooLarge, codes.ResourceExhausted},
		{store.ErrHistoryLost, codes.OutOfRange},
		{store.ErrStoreGone, codes.DataLoss},
		{store.ErrLeaseLost, codes.FailedPrecondition},
		{store.ErrDenied, codes.PermissionDenied},
		{store.ErrAway, codes.Unavailable},
		{store.ErrClosed, codes.Unavailable}, // the gateway ends: another one will come
		{secret.ErrNoKey, codes.NotFound},
	}
}

// maxMessageBytes bounds a status's message: some errors quote keys.
const maxMessageBytes = 4 << 10

// ToStatus returns the status by which a store's error crosses the wire; nil for nil.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}

	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxMessageBytes)], "\ufffd")
	for _, f := range failures() {
		if errors.Is(err, f.err) {
			return status.Error(f.code, text)
		}
	}

	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unknown, text)
}

// FromStatus returns the store's error that a status stands for, with its text; another error as it
// is, without gRPC's words around it.
func FromStatus(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}

	for _, f := range failures() {
		if s.Code() != f.code {
			continue
		}
		if s.Message() == f.err.Error() {
			return f.err
		}
		return &remoteError{s.Message(), f.err}
	}

	return &remoteError{s.Message(), err}
}

// remoteError has the text that the gateway gave.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }
