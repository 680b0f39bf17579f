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
	quiescePoll = 5 * time.Millisecond
	// maxUnaware is how long an agent that is just starting may look like one of an older binary.
	maxUnaware = 3 * time.Second
)

// ErrUnaware is Quiesce's error if the agent's binary is older and cannot be asked.
var ErrUnaware = unitdir.ErrAgentUnaware

// Quiesced keeps hooks of a unit from beginning until it is closed, or this process ends.
type Quiesced interface {
	// Holds reports whether no hook can have begun so far.
	Holds() bool
	// Close lets hooks run again.
	Close() error
}

// Quiesce keeps hooks of a unit of this host from beginning, and returns once none runs. It uses locks on
// the unit's directory only: if the caller dies, the unit goes on. A hook whose agent has died counts as
// long as its process lives. Quiesce calls onWait once if it must wait. It returns ErrUnaware if the unit's
// agent is too old to take part, or ctx's error.
func Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (Quiesced, error) {
	folder := unitdir.Of(machineDir, unit).Legacy()
	begin := time.Now()
	waited := false

	for {
		q, err := tryQuiesce(folder)
		if err == nil {
			return q, nil
		}

		hookRuns := errors.Is(err, unitdir.ErrHookRuns)
		mayLearn := errors.Is(err, ErrUnaware) && time.Since(begin) <= maxUnaware
		if !hookRuns && !mayLearn {
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

// tryQuiesce locks the unit's hooks out, for a backup of its directory. It returns [unitdir.ErrHookRuns] if
// one runs.
func tryQuiesce(folder unitdir.Folder) (*unitdir.Quiesced, error) {
	q, err := folder.TryQuiesce()
	if err != nil {
		return nil, err
	}

	// The agent has ended its hook before it gives the lock up, unless it has died.
	runs, err := hookexec.StillRuns(q.Folder().ProcessPath())
	if err != nil {
		_ = q.Close()
		return nil, fmt.Errorf("cannot find out whether a hook runs: %w", err)
	}
	if runs {
		_ = q.Close()
		return nil, unitdir.ErrHookRuns
	}

	return q, nil
}
