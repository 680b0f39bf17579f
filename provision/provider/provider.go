// Package provider is what the provisioner asks of those who make machines: the
// Provider interface and the values that cross it.
//
// It is no provider itself: provision/local and others are. providertest states
// what each must do. provision and the providers import it.
package provider

import (
	"context"
	"errors"
)

// ErrTransient marks a failed Start as worth another try by itself: wrap it
// with %w. Any other failure waits for the operator.
var ErrTransient = errors.New("try again later")

// Provider makes and ends instances of one environment. Methods may be called
// from several goroutines at once, and by several processes on one environment.
type Provider interface {
	// Capabilities says what the provider is. It costs nothing and never changes.
	Capabilities(ctx context.Context) (Capabilities, error)

	// Start makes a running instance for the spec and returns when its agent
	// can come up. It is idempotent on the token: while an instance with that
	// token runs, that one is returned; one that has ended is started again.
	Start(ctx context.Context, spec Spec) (Instance, error)

	// Stop ends the instance and frees all it had, its files included. One that
	// is gone already, or never was, is no error.
	Stop(ctx context.Context, instance string) error

	// Instances lists the environment's instances that still have something to
	// free, running or not, and no other environment's.
	Instances(ctx context.Context) ([]Instance, error)
}

// Capabilities say what a provider is and can do.
type Capabilities struct {
	Name string
	// Isolated: a machine's processes and files are its own. Without it a
	// machine is a part of this host.
	Isolated bool
}

// Spec says which instance is wanted.
type Spec struct {
	Environment string // uuid; instances carry it as a tag
	Machine     string // the machine's id, "3"
	Series      string
	// Token is the same for every Start of the same machine and differs between
	// machines.
	Token string
}

// Instance is one instance as its provider knows it.
type Instance struct {
	ID      string // the provider's name for it
	Machine string // the machine's id it was started for
	Running bool   // false: it has ended, but something of it is left
}
