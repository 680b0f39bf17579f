// Package confined has the agents of a test binary reach their state as those of a confined machine do: by a
// gateway with the table of state/access, over a socket.
//
// The gateway is in the agents' own process, since the scripts' machines are processes of one host. What it
// refuses is refused. It is for tests; nothing of it is shipped.
package confined

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"bijou/state"
	"bijou/state/access"
	"bijou/state/gateway"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/kit/accessed"
)

// Variable names a directory. If it is set, the agents of a test binary are confined, and note there what they
// were refused.
const Variable = "BIJOU_TEST_CONFINED"

// AgentState returns what multicall.Options.AgentState is to be in this process; nil without [Variable].
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

// confine serves the state to this process itself, until it ends.
func confine(opened *state.State, machine, dir string) (*state.State, error) {
	g, err := gateway.New(opened.Store(), gateway.Table{})
	if err != nil {
		return nil, err
	}
	if i := slices.Index(os.Args, "--env"); i > 0 && i+1 < len(os.Args) {
		g.ServeSecrets(keyfile.In(os.Args[i+1]))
	}

	socket := filepath.Join(dir, "socket-"+strconv.Itoa(os.Getpid()))
	if _, err := g.Listen(gateway.Agent(machine), socket); err != nil {
		return nil, err
	}

	st, err := remote.Open(context.Background(), "bijou+unix://"+socket)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state by a gateway: %w", err)
	}

	s := state.OpenIn(&noting{st, accessed.NoteRefusals(dir)})
	s.SetMetrics(opened.Metrics())
	return s, nil
}

// noting notes what its process was refused, and refuses it.
type noting struct {
	store.Store
	note func(refusal string)
}

func (n *noting) noteDenied(op, key string, err error) {
	if errors.Is(err, store.ErrDenied) {
		n.note(fmt.Sprintf("%s %s: %s", op, key, err))
	}
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
	n.noteDenied("commit", "", err)
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
	s.n.noteDenied(string(access.Get), key, err)
	return kv, ok, err
}

func (s *notingSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	s.n.noteDenied(string(access.List), prefix, err)
	return kvs, err
}

type notingWatcher struct {
	store.Watcher
	n *noting
}

func (w *notingWatcher) Next(ctx context.Context) (store.Batch, error) {
	b, err := w.Watcher.Next(ctx)
	w.n.noteDenied(string(access.Watch), "", err)
	return b, err
}
