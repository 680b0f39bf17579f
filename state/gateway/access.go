package gateway

import (
	"context"

	"bijou/state/store"
)

// Identity names who asks: Operator, or an Agent.
type Identity string

// Operator is the identity of whoever owns the environment's directory.
const Operator Identity = "operator"

// View reads the state at one revision.
type View interface {
	// Get reads one key; ok is false if it is absent.
	Get(ctx context.Context, key string) (kv store.KV, ok bool, err error)
	// List reads all keys with the prefix, sorted.
	List(ctx context.Context, prefix string) ([]store.KV, error)
}

// Access decides what identities have a right to. It may be called from several goroutines.
type Access interface {
	// Rights returns what the identity may as of the view's revision. What the rights read there, when
	// they are made or asked, becomes a condition of the commit that they are asked for.
	Rights(ctx context.Context, v View, who Identity) (Rights, error)
}

// Rights are one identity's at one revision, for one goroutine. Each method returns nil for yes, a
// store.ErrDenied that says who may not do what for no, and another error if it cannot tell.
type Rights interface {
	// MayRead is asked for a key that is read, listed, or a commit is conditional on, and for one that
	// was put and is watched. A value of nil says that the key is absent.
	MayRead(ctx context.Context, key string, value []byte) error
	// MayList is asked before a list, of which each key is asked for by itself, and for a prefix that a
	// commit is conditional on.
	MayList(ctx context.Context, prefix string) error
	// MayWatch is asked before a watch, for each of its keys, and again for each event that has come by one.
	// Of a key that was put MayRead is asked as well.
	MayWatch(ctx context.Context, key string) error
	// MayWatchPrefix is the same for a watch's prefixes.
	MayWatchPrefix(ctx context.Context, prefix string) error
	// MayCommit is asked for the operations of a commit. Leases are the identity's own.
	MayCommit(ctx context.Context, ops []store.Op) error
}

// Unrestricted lets every identity do everything.
type Unrestricted struct{}

// Rights returns all rights, and reads nothing.
func (Unrestricted) Rights(context.Context, View, Identity) (Rights, error) { return allRights{}, nil }

type allRights struct{}

func (allRights) MayRead(context.Context, string, []byte) error { return nil }
func (allRights) MayList(context.Context, string) error         { return nil }
func (allRights) MayWatch(context.Context, string) error        { return nil }
func (allRights) MayWatchPrefix(context.Context, string) error  { return nil }
func (allRights) MayCommit(context.Context, []store.Op) error   { return nil }
