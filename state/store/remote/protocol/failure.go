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

// failure maps an error of the stores to a status code. gRPC itself returns some of these codes, with the same
// meaning: Unavailable if a connection breaks, and ResourceExhausted if a message is too large.
type failure struct {
	err  error
	code codes.Code
}

// failures returns the status code of each error. FromStatus uses the first error that has the status's code.
func failures() []failure {
	return []failure{
		{store.ErrConflict, codes.Aborted},
		{store.ErrTooLarge, codes.ResourceExhausted},
		{store.ErrHistoryLost, codes.OutOfRange},
		{store.ErrStoreGone, codes.DataLoss},
		{store.ErrLeaseLost, codes.FailedPrecondition},
		{store.ErrDenied, codes.PermissionDenied},
		{store.ErrAway, codes.Unavailable},
		// The gateway is stopping. The process that replaces it will answer.
		{store.ErrClosed, codes.Unavailable},
		{secret.ErrNoKey, codes.NotFound},
	}
}

// maxMessageBytes is the longest message of a status. Some errors quote long keys.
const maxMessageBytes = 4 << 10

// ToStatus returns the status error for an error in failures or a context's error. The status of any other error
// has the code Unknown. The message is the error's text, cut to maxMessageBytes. ToStatus returns nil for
// nil.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}

	text := err.Error()
	// The cut may split a character, but the message must be valid UTF-8.
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

// FromStatus translates a status error. The returned error wraps the first error in failures that has the status's
// code, or wraps err if there is none. Its text is the status's message, without the words that gRPC adds.
// FromStatus returns nil for nil, and other errors unchanged.
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

// remoteError is an error with the text that the gateway has sent. It wraps kind.
type remoteError struct {
	text string
	kind error // a store's error, or the status error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }
