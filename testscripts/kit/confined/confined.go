// Package confined lets the agents of a test binary reach their state as the agents of a confined machine do:
// over a socket, through a gateway that enforces the table of state/access.
//
// The gateway of scripts is in the agents' own process, since the scripts' machines are processes of one
// host. Suites that kill a gateway run it as a separate process, a [Gateway]. Unlike package accessed, it
// also refuses the requests that it reports. The package is for tests and is not part of the product.
package confined

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"bijou/state"
	"bijou/state/access"
	"bijou/state/gateway"
	"bijou/state/keys"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/kit/accessed"
)

// Variable names a directory. If it is set, the agents of a test binary are confined, and record their
// refusals in the directory.
const Variable = "BIJOU_TEST_CONFINED"

// AgentState returns the value of multicall.Options.AgentState for this process. It is nil without
// [Variable].
func AgentState() func(opened *state.State, machine string) *state.State {
	dir := os.Getenv(Variable)
	if dir == "" {
		return nil
	}

	return func(opened *state.State, machine string) *state.State {
		s, err := confine(opened, machine, dir)
		if err != nil {
			panic(err) // a test whose agents are not confined must not pass
		}
		return s
	}
}

// confine opens the state through a gateway. This is the gateway that SocketVariable names, or else one in
// this process.
func confine(opened *state.State, machine, dir string) (*state.State, error) {
	socket := os.Getenv(SocketVariable)
	if socket == "" {
		socket = filepath.Join(dir, "socket-"+strconv.Itoa(os.Getpid()))
		if err := serveItself(opened, machine, socket); err != nil {
			return nil, err
		}
	}

	st, err := openRetrying("bijou+unix://" + socket)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state by a gateway: %w", err)
	}

	s := state.OpenIn(&noting{st, accessed.NoteRefusals(dir)})
	s.SetMetrics(opened.Metrics())
	return s, nil
}

// openRetrying opens the store through a gateway. While the gateway is away it retries, as agents do while
// their store is away.
func openRetrying(url string) (store.Store, error) {
	for {
		st, err := remote.Open(context.Background(), url)
		if !errors.Is(err, store.ErrAway) {
			return st, err
		}
	}
}

// serveItself starts a gateway in this process, which serves only this process until it ends.
func serveItself(opened *state.State, machine, socket string) error {
	g, err := gateway.New(opened.Store(), gateway.Table{})
	if err != nil {
		return err
	}
	if i := slices.Index(os.Args, "--env"); i > 0 && i+1 < len(os.Args) {
		g.ServeSecrets(keyfile.In(os.Args[i+1]))
	}

	_, err = g.Listen(gateway.Agent(machine), socket)
	return err
}

// noting is a store that records each refusal that its process gets, and passes it on.
type noting struct {
	store.Store
	note func(refusal string)
}

func (n *noting) noteDenied(op access.Op, key string, err error) {
	if errors.Is(err, store.ErrDenied) && !accessed.IsExcepted(op, key, n.isGone) {
		n.note(fmt.Sprintf("%s %s: %s", op, key, err))
	}
}

// isGone reports whether the unit was removed. All agents can read that a record does not exist.
func (n *noting) isGone(unit string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	s, err := n.Store.Snapshot(ctx)
	if err != nil {
		return false
	}
	defer s.Close()

	kv, exists, err := s.Get(ctx, keys.Unit(unit))
	if err != nil {
		return false
	}
	if !exists {
		return true
	}
	return accessed.IsGone(kv.Value)
}

func (n *noting) SecretKeeper() secret.Keeper { return n.Store.(store.SecretHolder).SecretKeeper() }

func (n *noting) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := n.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &notingSnapshot{s, n}, nil
}

func (n *noting) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	revision, err := n.Store.Commit(ctx, txn)
	isExcepted := func(op store.Op) bool { return accessed.IsExcepted(access.Put, op.Key, n.isGone) }
	// The error does not say which write was refused. An agent then repeats its other writes alone.
	if errors.Is(err, store.ErrDenied) && !slices.ContainsFunc(txn.Ops, isExcepted) {
		n.note(fmt.Sprintf("commit: %s", err))
	}
	return revision, err
}

func (n *noting) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	w, err := n.Store.Watch(ctx, after, scope)
	if err != nil {
		return nil, err
	}
	return &notingWatcher{w, n}, nil
}

type notingSnapshot struct {
	store.Snapshot
	n *noting
}

func (s *notingSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := s.Snapshot.Get(ctx, key)
	s.n.noteDenied(access.Get, key, err)
	return kv, ok, err
}

func (s *notingSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	s.n.noteDenied(access.List, prefix, err)
	return kvs, err
}

type notingWatcher struct {
	store.Watcher
	n *noting
}

func (w *notingWatcher) Next(ctx context.Context) (store.Batch, error) {
	b, err := w.Watcher.Next(ctx)
	w.n.noteDenied(access.Watch, "", err)
	return b, err
}
