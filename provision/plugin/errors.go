package plugin

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
)

// providerError is an error that has crossed: its text as it was said, and what errors.Is finds in
// it.
type providerError struct {
	text  string
	cause error // may be nil
}

func (f *providerError) Error() string { return f.text }
func (f *providerError) Unwrap() error { return f.cause }

func errorToStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	switch {
	case errors.Is(err, provider.ErrTransient):
		code = codes.Aborted
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Error(code, toUTF8(err.Error()))
}

// gRPC's words around the text go.
func statusToError(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	f := &providerError{text: s.Message()}
	switch s.Code() {
	case codes.Aborted, codes.Unavailable:
		f.cause = provider.ErrTransient
	case codes.Canceled:
		f.cause = context.Canceled
	case codes.DeadlineExceeded:
		f.cause = context.DeadlineExceeded
	case codes.Unimplemented:
		f.text = "the provider does not know that method: " + f.text
	}
	if f.text == "" {
		f.text = "no reason was given (" + s.Code().String() + ")"
	}
	return f
}
