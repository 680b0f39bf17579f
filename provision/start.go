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

// startError is the error of a failed start that was recorded for the machine.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// startInstance starts an instance for the machine, unless the machine no longer needs one, and records the
// instance or the failure. Jobs of the pool call it.
func (l *leader) startInstance(ctx context.Context, machine string) error {
	o, err := l.readStartRequest(ctx, machine)
	if err != nil || !o.wanted {
		return err
	}

	i, err := l.askProvider(ctx, o.spec)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		l.Log.Warn("instance did not start", "machine", machine, "error", err)
		if err := l.recordFailure(ctx, machine, o.retry, err); err != nil {
			return err
		}
		return startError{err}
	}

	return l.recordInstance(ctx,
		Action{Machine: machine, Instance: i.ID, Private: i.Private, Public: i.Public}, o.epoch)
}

type startRequest struct {
	spec   provider.Spec
	wanted bool  // false if the machine no longer needs an instance
	retry  bool  // a previous start has failed
	epoch  int64 // the epoch of the machine's claim
}

// readStartRequest reads the request to start a machine. It returns an error if this process is no longer
// the leader. The token is the same for each start of a machine, since machine IDs are never reused.
func (l *leader) readStartRequest(ctx context.Context, id string) (o startRequest, err error) {
	err = l.update(ctx, func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		o = startRequest{}
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

		o.wanted = m.Life != state.Dead
		o.retry = m.Status == state.MachineError
		o.spec = provider.Spec{
			Environment: env.UUID,
			Machine:     id,
			Series:      m.Series,
			Constraints: m.Constraints,
			Placement:   m.Placement,
			Tools:       env.Tools,
			Token:       env.UUID + "-" + id,
			Instance:    m.InstanceID,
		}
		o.epoch, err = tx.ClaimEpoch(id)
		return err
	})

	return o, err
}

// askProvider starts the instance, and forwards its output while it boots.
func (l *leader) askProvider(ctx context.Context, spec provider.Spec) (provider.Instance, error) {
	boot := newBootOutput(ctx, l, spec.Machine)
	i, err := l.callStart(ctx, spec, boot)
	boot.close(ctx, err)
	return i, err
}

// callStart calls the provider's Start, and checks the returned instance. After startTimeout it gives up with a
// transient error. The next start has the same token, so it cannot start a second instance.
func (l *leader) callStart(ctx context.Context, spec provider.Spec, boot io.Writer) (provider.Instance, error) {
	asked, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	i, err := l.Provider.Start(asked, spec, boot)
	if err != nil && asked.Err() != nil {
		return i, fmt.Errorf("the provider did not start machine %s within %s: %w", spec.Machine, startTimeout, provider.ErrTransient)
	}
	if err != nil {
		return i, err
	}

	return i, l.checkInstance(spec, i)
}

// checkInstance returns an error if the instance cannot be the result of this start.
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

// recordFailure records that a machine's start has failed. A transient failure is retried after a growing
// delay. The machine keeps its recorded instance, which may still exist. Any other failure waits for the
// operator. If the operator has resolved the failure during a retry, the failure of that retry is not
// recorded.
func (l *leader) recordFailure(ctx context.Context, machine string, again bool, failure error) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil || again && m.Status == state.MachinePending {
			return err
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

func retryDelay(attempts int) time.Duration {
	return min(minRetryDelay<<min(attempts, 10), maxRetryDelay)
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

// forgetIfHelped forgets the backoff of an action whose effect has lasted at least until its backoff was
// over. The next attempt counts as the first.
func (b backoffs) forgetIfHelped(a Action, until time.Time) {
	if entry, ok := b[a]; ok && !until.Before(entry.due) {
		delete(b, a)
	}
}

// filterDue returns the actions whose backoff is over. It forgets a backoff that is over if its action is
// no longer planned, since that action has succeeded.
func (b backoffs) filterDue(actions []Action, now time.Time) (due []Action) {
	wanted := map[Action]bool{}
	for _, a := range actions {
		wanted[a] = true
		if !now.Before(b[a].due) {
			due = append(due, a)
		}
	}

	for a, entry := range b {
		if !wanted[a] && !now.Before(entry.due) {
			delete(b, a)
		}
	}

	return due
}

// untilDue returns the time until the first backoff of one of the actions is over. It returns limit if that is
// earlier, or if none of them waits.
func (b backoffs) untilDue(actions []Action, now time.Time, limit time.Duration) time.Duration {
	for _, a := range actions {
		if entry, ok := b[a]; ok && now.Before(entry.due) {
			limit = min(limit, entry.due.Sub(now))
		}
	}
	return limit
}
