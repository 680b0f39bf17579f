package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

// startError is a failed start that is in the machine's record.
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
	wanted bool  // else the machine needs none any more
	retry  bool  // a start has failed before
	epoch  int64 // of the machine's claim
}

// readStartRequest reads the request to start a machine. It returns an error if this is no longer the
// leader. The token is the same at every start, since ids are never used again.
func (l *leader) readStartRequest(ctx context.Context, id string) (o startRequest, err error) {
	err = l.update(ctx, func(tx *state.Tx) error {
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		m, err := tx.Machine(id)
		o.wanted = err == nil && m.Life != state.Dead
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

		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}

		o.epoch, err = tx.ClaimEpoch(id)
		return err
	})

	return o, err
}

// askProvider calls the provider's Start, and checks the instance that it returns. After startTimeout it
// gives up with a transient error. The next start has the same token, so that nothing starts twice.
func (l *leader) askProvider(ctx context.Context, spec provider.Spec) (provider.Instance, error) {
	asked, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	boot := newBootOutput(ctx, l, spec.Machine)
	i, err := l.Provider.Start(asked, spec, boot)
	if err != nil && asked.Err() != nil {
		err = fmt.Errorf("the provider has not started it within %s: %w", startTimeout, provider.ErrTransient)
	}
	if err == nil {
		err = l.checkInstance(spec, i)
	}
	boot.close(ctx, err)
	return i, err
}

// checkInstance refuses an instance that the provider cannot have meant for this start.
func (l *leader) checkInstance(spec provider.Spec, i provider.Instance) error {
	switch {
	case i.ID == "":
		return errors.New("the provider answers with an instance without an id")
	case i.Machine != spec.Machine:
		return fmt.Errorf("the provider answers with instance %q of machine %q", i.ID, i.Machine)
	case i.Environment != spec.Environment:
		return fmt.Errorf("the provider answers with instance %q of model %q", i.ID, i.Environment)
	}

	if other, ok := l.owners.reserve(i.ID, spec.Machine); !ok {
		return fmt.Errorf("the provider answers with instance %q, which belongs to machine %s", i.ID, other)
	}

	return nil
}

// recordFailure records that a machine's start has failed. A transient failure is retried, after a longer
// time each; the machine keeps its recorded instance, which may exist. Any other failure waits for the
// operator. If this was a retry, and the operator has resolved the failure meanwhile, that answer stands.
func (l *leader) recordFailure(ctx context.Context, machine string, again bool, failure error) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil || again && m.Status == state.MachinePending {
			return err
		}

		f := state.StartFailure{Message: failure.Error()}
		if errors.Is(failure, provider.ErrTransient) {
			f.Instance = m.InstanceID
			f.Attempts, f.RetryAt = m.Attempts+1, l.Now().Add(retryDelay(m.Attempts)).UTC().Truncate(time.Millisecond)
		}

		return tx.SetStartFailure(machine, f)
	})
}

const (
	minRetryDelay = 10 * time.Second // doubles each time
	maxRetryDelay = 10 * time.Minute
)

func retryDelay(attempts int) time.Duration {
	return min(minRetryDelay<<min(attempts, 10), maxRetryDelay)
}

// backoffs remembers what was done, so that what does not help is done less and less often: a start
// whose instance ends at once, a stop that leaves the instance there. It is for one goroutine.
type backoffs map[Action]retryBackoff

// retryBackoff counts how often an action was done, and says when it may be again.
type retryBackoff struct {
	attempts int
	due      time.Time
}

func (b backoffs) noteDone(a Action, now time.Time) {
	n := b[a].attempts
	b[a] = retryBackoff{n + 1, now.Add(retryDelay(n))}
}

// forgetIfHelped forgets an action that has helped until it was due again: the next one counts as the
// first.
func (b backoffs) forgetIfHelped(a Action, until time.Time) {
	if entry, ok := b[a]; ok && !until.Before(entry.due) {
		delete(b, a)
	}
}

// filterDue returns the actions whose backoff is over. It forgets the backoff of an action that is due but
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

func (b backoffs) untilDue(actions []Action, now time.Time, limit time.Duration) time.Duration {
	for _, a := range actions {
		if entry, ok := b[a]; ok && now.Before(entry.due) {
			limit = min(limit, entry.due.Sub(now))
		}
	}
	return limit
}
