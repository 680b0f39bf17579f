package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/state/access"
	"bijou/state/store"
)

// Table is the Access that applies the table in package access. It allows operators everything.
type Table struct{}

// machineIdentity begins the identity of a machine's agents. The machine's id follows it.
const machineIdentity = "machine-"

// Agent returns the identity of a machine's agent and of its units' agents.
func Agent(machine string) Identity { return Identity(machineIdentity + machine) }

// Rights returns the rights of the identity at the current time. They must not be used after ctx is done. Only
// the methods of the result read the view. Rights returns an error if who is neither Operator nor a result of Agent.
func (Table) Rights(ctx context.Context, v View, who Identity) (Rights, error) {
	if who == Operator {
		return allRights{}, nil
	}

	machine, ok := strings.CutPrefix(string(who), machineIdentity)
	if !ok {
		return nil, fmt.Errorf("internal error: %q is not an identity", who)
	}
	return &tableRights{access.Agent(machine), access.NewPlacement(placementReader{ctx, v}).At(time.Now())}, nil
}

// tableRights are the rights of a machine's agents by the table.
type tableRights struct {
	who       access.Identity
	placement *access.Placement
}

// MayRead decides by the rule for Get.
func (r *tableRights) MayRead(_ context.Context, key string, value []byte) error {
	return toDenied(access.May(r.who, r.placement, access.Get, key, value, nil))
}

// Show hides the part of the value that the table hides.
func (r *tableRights) Show(key string, value []byte) []byte { return access.Show(r.who, key, value) }

// MayList decides by the rule for List.
func (r *tableRights) MayList(_ context.Context, prefix string) error {
	return toDenied(access.May(r.who, r.placement, access.List, prefix, nil, nil))
}

// MayWatch decides by the rule for Watch.
func (r *tableRights) MayWatch(_ context.Context, key string) error {
	return toDenied(access.May(r.who, r.placement, access.Watch, key, nil, nil))
}

// MayWatchPrefix decides by the rule for Watch.
func (r *tableRights) MayWatchPrefix(_ context.Context, prefix string) error {
	return toDenied(access.MayWatchPrefix(r.who, r.placement, prefix))
}

// MayCommit decides about each operation as access.MayWrite does, by the rule for Put, Lease or Delete.
func (r *tableRights) MayCommit(_ context.Context, ops []store.Op) error {
	writes := make([]access.Write, len(ops))
	for i, o := range ops {
		writes[i] = access.Write{Key: o.Key, Value: present(o.Value), Delete: o.Delete, Leased: o.Lease != 0, Quiet: o.Quiet}
	}
	return toDenied(access.MayCommit(r.who, r.placement, writes))
}

// toDenied makes a refusal of package access a store.ErrDenied. It returns all other errors unchanged.
func toDenied(err error) error {
	if errors.Is(err, access.ErrRefused) {
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	}
	return err
}

// placementReader reads the state for an [access.Placement].
type placementReader struct {
	ctx  context.Context
	view View
}

// Get returns the value of a key, or nil if the key is absent.
func (r placementReader) Get(key string) ([]byte, error) {
	kv, ok, err := r.view.Get(r.ctx, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	return present(kv.Value), nil
}

// List returns the values of all keys with the prefix, by key.
func (r placementReader) List(prefix string) (map[string][]byte, error) {
	kvs, err := r.view.List(r.ctx, prefix)
	values := map[string][]byte{}
	for _, kv := range kvs {
		values[kv.Key] = present(kv.Value)
	}
	return values, err
}

// present returns the value of a key that exists. It is never nil, since nil means that a key is absent.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
