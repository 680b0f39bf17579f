package gateway

import (
	"context"

	"bijou/state/store"
)

// Identity is the name of a client. It is Operator, or a result of Agent.
type Identity string

// Operator is the identity of the owner of the environment's directory.
const Operator Identity = "operator"

// View reads the state at one revision.
type View interface {
	// Get reads a key; ok is false if the key is absent.
	Get(ctx context.Context, key string) (kv store.KV, ok bool, err error)
	// List reads all keys with the prefix, sorted.
	List(ctx context.Context, prefix string) ([]store.KV, error)
}

// Access determines the rights of identities. Its method is safe for concurrent use.
type Access interface {
	// Rights returns the rights of the identity at the view's revision. Everything that Rights and its result
	// read from the view becomes a condition of the commit that they allow.
	Rights(ctx context.Context, v View, who Identity) (Rights, error)
}

// Rights are the rights of an identity at one revision. Only one goroutine may use them. Each method returns
// nil if the operation is allowed, a store.ErrDenied that describes the refusal if not, and a different error
// if it cannot decide.
type Rights interface {
	// MayRead decides about a key that is read, listed, or a condition of a commit. It also decides about a
	// watched key that was put. A nil value means that the key is absent.
	MayRead(ctx context.Context, key string, value []byte) error
	// Show returns the part of a value that the identity can see, after MayRead has allowed it.
	Show(key string, value []byte) []byte
	// MayList decides about a list, or a prefix that is a condition of a commit. The gateway then calls
	// MayRead for each key of the list.
	MayList(ctx context.Context, prefix string) error
	// MayWatch decides about a key of a watch. The gateway calls it before the watch, and again for each
	// event. If the key was put, the gateway also calls MayRead.
	MayWatch(ctx context.Context, key string) error
	// MayWatchPrefix is like MayWatch, for a prefix of a watch.
	MayWatchPrefix(ctx context.Context, prefix string) error
	// MayCommit decides about the operations of a commit. The gateway has checked that their leases belong to
	// the identity.
	MayCommit(ctx context.Context, ops []store.Op) error
}

// Unrestricted is an Access that allows everything.
type Unrestricted struct{}

// Rights returns all rights. It reads nothing.
func (Unrestricted) Rights(context.Context, View, Identity) (Rights, error) { return allRights{}, nil }

// allRights are the rights to do everything.
type allRights struct{}

func (allRights) MayRead(context.Context, string, []byte) error { return nil }
func (allRights) Show(_ string, value []byte) []byte            { return value }
func (allRights) MayList(context.Context, string) error         { return nil }
func (allRights) MayWatch(context.Context, string) error        { return nil }
func (allRights) MayWatchPrefix(context.Context, string) error  { return nil }
func (allRights) MayCommit(context.Context, []store.Op) error   { return nil }
