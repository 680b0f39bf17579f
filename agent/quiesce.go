package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/agent/hookexec"
	"bijou/state/backoff"
	"bijou/state/unitdir"
)

const (
	// quiescePoll is the interval between attempts to take the lock.
	quiescePoll = 5 * time.Millisecond
	// maxUnaware is how long a starting agent can look like an agent with an older binary.
	maxUnaware = 3 * time.Second
)

// ErrUnaware is returned if the agent's binary is too old for [Quiesce].
var ErrUnaware = unitdir.ErrAgentUnaware

// Quiesced is a lock on the hooks of a unit. No hook can begin until Close is called or this process ends.
type Quiesced interface {
	// Holds reports whether no hook can have begun since Quiesce returned.
	Holds() bool
	// Close lets hooks begin again.
	Close() error
}

// Quiesce locks the hooks of a unit on this host. It returns once no hook is running, so from then on no hook
// runs until the lock is closed. It only locks files in the unit's directory, so hooks can run again if the
// caller dies. It also waits for a hook whose agent has died, as long as the hook's process is running. If it
// must wait for a hook, it calls onWait once. If ctx is done, it returns ctx's error. If the unit's agent is too
// old to respect the lock, it returns ErrUnaware, but only after maxUnaware, since an agent that is just
// starting looks the same.
func Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (Quiesced, error) {
	folder := unitdir.Of(machineDir, unit).Legacy() // this path also works while an older binary runs the unit
	begin := time.Now()
	waited := false

	for {
		q, err := tryQuiesce(folder)
		if err == nil {
			return q, nil
		}

		hookRuns := errors.Is(err, unitdir.ErrHookRuns)
		maybeStarting := errors.Is(err, ErrUnaware) && time.Since(begin) <= maxUnaware
		if !hookRuns && !maybeStarting {
			return nil, err
		}

		if hookRuns && !waited {
			onWait()
			waited = true
		}

		if err := backoff.Sleep(ctx, quiescePoll); err != nil {
			return nil, err
		}
	}
}

// tryQuiesce takes the lock that the unit's hooks need. It returns [unitdir.ErrHookRuns] if a hook is running,
// or ErrUnaware if the unit's agent does not use the lock, or is just starting.
func tryQuiesce(folder unitdir.Folder) (*unitdir.Quiesced, error) {
	q, err := folder.TryQuiesce()
	if err != nil {
		return nil, err
	}

	// An agent releases the lock only after its hook has ended, but the hook of a dead agent may still be
	// running.
	runs, err := hookexec.StillRuns(q.Folder().ProcessPath())
	if err != nil {
		_ = q.Close()
		return nil, fmt.Errorf("cannot find out whether a hook is running: %w", err)
	}
	if runs {
		_ = q.Close()
		return nil, unitdir.ErrHookRuns
	}

	return q, nil
}
