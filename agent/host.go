package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"bijou/agent/pace"
	"bijou/agent/uniter"
	"bijou/state"
)

// host is what the unit agents of one process share.
type host struct {
	state    *state.State
	dir      string // the machine's
	tools    string
	sockets  string
	slots    *uniter.Slots
	log      *slog.Logger
	fault    Fault
	presence *presence
	leaders  *leaders
	trouble  *trouble
}

// newHost makes the sockets' folder and the presence; slots, tools and fault are
// for the caller to say.
func newHost(st *state.State, env state.Environment, dir string, log *slog.Logger) (*host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the machine's folder: %w", err)
	}
	sockets, err := socketDir(env.UUID, dir)
	if err != nil {
		return nil, err
	}
	p, t := newPresence(st, log), newTrouble(log)
	p.told = t.of("session")
	return &host{
		state: st, dir: dir, sockets: sockets, log: log,
		presence: p, leaders: newLeaders(p, st, log), trouble: t,
	}, nil
}

// environment reads the environment's record once what the agent serves exists.
// A store that is away is waited for.
func environment(ctx context.Context, st *state.State, log *slog.Logger, exists func(v *state.View) error) (env state.Environment, err error) {
	var again pace.Pacer
	told := newTrouble(log).of("start")
	for {
		err = st.View(ctx, func(v *state.View) (err error) {
			if env, err = v.Environment(); err != nil {
				return err
			}
			return exists(v)
		})
		hopeless := errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed)
		if err == nil || hopeless || ctx.Err() != nil {
			return env, err
		}
		told(err)
		_ = again.Pause(ctx)
	}
}
