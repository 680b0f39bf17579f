package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

// startError is the error of a failed start, after recordFailure has succeeded.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// startInstance starts an instance for the machine, unless the machine no longer needs one, and records the
// instance or the failure. If ctx ends during the start, it records neither. It returns a startError if the start
// has failed and recordFailure has succeeded. Jobs of the pool call it.
func (l *leader) startInstance(ctx context.Context, machine string) error {
	request, err := l.readStartRequest(ctx, machine)
	if err != nil {
		return err
	}
	if !request.wanted {
		return nil
	}

	i, startErr := l.startWithOutput(ctx, request.spec)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if startErr != nil {
		l.Log.Warn("instance did not start", "machine", machine, "error", startErr)
		if err := l.recordFailure(ctx, machine, request.retry, startErr); err != nil {
			return err
		}
		return startError{startErr}
	}

	started := Action{Machine: machine, Instance: i.ID, Private: i.Private, Public: i.Public}
	return l.recordInstance(ctx, started, request.epoch)
}

// startRequest contains the facts about a machine that a start needs.
type startRequest struct {
	spec   provider.Spec
	wanted bool  // false if the machine no longer needs an instance
	retry  bool  // a previous start has failed
	epoch  int64 // the epoch of the machine's claim
}

// readStartRequest reads the request to start a machine. The request is not wanted if the machine is dead
// or has been removed. It returns an error if this process is no longer the leader, since it reads in an update.
//
// The request's token is the same for each start of a machine. It identifies the machine, since machine IDs
// are never reused.
func (l *leader) readStartRequest(ctx context.Context, id string) (request startRequest, err error) {
	err = l.update(ctx, func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		request = startRequest{}
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		m, err := tx.Machine(id)
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}

		request.wanted = m.Life != state.Dead
		request.retry = m.Status == state.MachineError
		request.spec = provider.Spec{
			Environment: env.UUID,
			Machine:     id,
			Series:      m.Series,
			Constraints: m.Constraints,
			Placement:   m.Placement,
			Tools:       env.Tools,
			Token:       env.UUID + "-" + id,
			Instance:    m.InstanceID,
		}
		request.epoch, err = tx.ClaimEpoch(id)
		return err
	})

	return request, err
}

// startWithOutput starts the instance with callStart. Meanwhile it writes the instance's output to the state.
func (l *leader) startWithOutput(ctx context.Context, spec provider.Spec) (provider.Instance, error) {
	boot := newBootOutput(ctx, l, spec.Machine)
	i, err := l.callStart(ctx, spec, boot)
	boot.close(ctx, err)
	return i, err
}

// callStart calls the provider's Start, and checks the returned instance. After startTimeout it gives up with a
// transient error. The next start has the same token, so it cannot start a second instance.
func (l *leader) callStart(ctx context.Context, spec provider.Spec, boot io.Writer) (provider.Instance, error) {
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	i, err := l.Provider.Start(startCtx, spec, boot)
	// This is also the case if ctx is done, which startInstance checks.
	if err != nil && startCtx.Err() != nil {
		return i, fmt.Errorf("the provider did not start machine %s within %s: %w", spec.Machine, startTimeout, provider.ErrTransient)
	}
	if err != nil {
		return i, err
	}

	return i, l.checkInstance(spec, i)
}

// checkInstance returns an error if the instance cannot be the result of a start with this spec, for example
// because it belongs to a different machine. Otherwise it reserves the instance for the spec's machine.
func (l *leader) checkInstance(spec provider.Spec, i provider.Instance) error {
	switch {
	case i.ID == "":
		return errors.New("the provider returned an instance without an id")
	case i.Machine != spec.Machine:
		return fmt.Errorf("the provider returned instance %q of machine %q", i.ID, i.Machine)
	case i.Environment != spec.Environment:
		return fmt.Errorf("the provider returned instance %q of model %q", i.ID, i.Environment)
	}

	if other, ok := l.owners.reserve(i.ID, spec.Machine); !ok {
		return fmt.Errorf("the provider returned instance %q, which belongs to machine %s", i.ID, other)
	}

	return nil
}

// recordFailure records that a machine's start has failed. After a transient failure, the start is retried
// with a growing delay, and the machine keeps its recorded instance, which may still exist. Any other failure
// waits for the operator.
//
// isRetry is set if an earlier start has failed. The failure of a retry is not recorded if the operator has
// resolved the earlier failure in the meantime. No failure is recorded for a machine that has been removed. In
// both cases, recordFailure returns nil.
func (l *leader) recordFailure(ctx context.Context, machine string, isRetry bool, failure error) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		resolved := isRetry && m.Status == state.MachinePending
		if resolved {
			return nil
		}

		f := state.StartFailure{Message: failure.Error()}
		if errors.Is(failure, provider.ErrTransient) {
			f.Instance = m.InstanceID
			f.Attempts = m.Attempts + 1
			f.RetryAt = l.Now().Add(retryDelay(m.Attempts)).UTC().Truncate(time.Millisecond)
		}

		return tx.SetStartFailure(machine, f)
	})
}

const (
	minRetryDelay = 10 * time.Second // doubled after each failure
	maxRetryDelay = 10 * time.Minute
)

// retryDelay returns the delay after an attempt. The argument earlierAttempts is the number of attempts
// before that one.
func retryDelay(earlierAttempts int) time.Duration {
	// The bound of the shift prevents an overflow.
	return min(minRetryDelay<<min(earlierAttempts, 10), maxRetryDelay)
}

// backoffs delays repeated actions, so that actions without effect become less frequent. Examples are a start
// whose instance stops at once, and a stop after which the instance still exists. Only one goroutine may use
// it.
type backoffs map[Action]retryBackoff

// retryBackoff counts the attempts at an action, and contains the time of the next one.
type retryBackoff struct {
	attempts int
	due      time.Time
}

// noteAttempt counts an attempt at the action, successful or not, and delays the next one.
func (b backoffs) noteAttempt(a Action, now time.Time) {
	n := b[a].attempts
	b[a] = retryBackoff{n + 1, now.Add(retryDelay(n))}
}

// forgetIfHelped forgets the backoff of an action if the action's effect, which has lasted until the given
// time, has outlasted the backoff. The next attempt then counts as the first.
func (b backoffs) forgetIfHelped(a Action, until time.Time) {
	if entry, ok := b[a]; ok && !until.Before(entry.due) {
		delete(b, a)
	}
}

// filterDue returns the planned actions that have no backoff, or whose backoff is over. It forgets a backoff
// that is over if its action is no longer planned. A later attempt then counts as the first.
func (b backoffs) filterDue(planned []Action, now time.Time) (due []Action) {
	isPlanned := map[Action]bool{}
	for _, a := range planned {
		isPlanned[a] = true
		// Without a backoff, the zero time is over.
		if !now.Before(b[a].due) {
			due = append(due, a)
		}
	}

	for a, entry := range b {
		if !isPlanned[a] && !now.Before(entry.due) {
			delete(b, a)
		}
	}

	return due
}

// untilDue returns the time until the first backoff of one of the actions is over, but at most limit. It
// returns limit if none of the actions has a backoff.
func (b backoffs) untilDue(actions []Action, now time.Time, limit time.Duration) time.Duration {
	for _, a := range actions {
		if entry, ok := b[a]; ok && now.Before(entry.due) {
			limit = min(limit, entry.due.Sub(now))
		}
	}
	return limit
}
