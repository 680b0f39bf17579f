package provision

import (
	"context"
	"fmt"
	"slices"

	"bijou/provision/provider"
	"bijou/state"
)

// blindness is for how long the provider has not told its instances, and why.
type blindness struct {
	hold
	err error
}

// instances asks the provider what it has, in bounded time. After an error it is
// asked again later and later, whatever changes meanwhile.
func (l *lead) instances(ctx context.Context) ([]provider.Instance, error) {
	if l.Now().Before(l.blind.due) {
		return nil, l.blind.err
	}
	asked, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	have, err := l.Provider.Instances(asked)
	switch {
	case err == nil:
		l.blind = blindness{}
		return have, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.Err() != nil:
		err = fmt.Errorf("the provider has not answered for %s", askLimit)
	}
	n := l.blind.attempts
	l.blind = blindness{
		hold{n + 1, l.Now().Add(min(delay(n), interval))},
		fmt.Errorf("cannot list instances, so none is started or stopped: %w", err),
	}
	return nil, l.blind.err
}

// logSource is what the provisioner's log is called.
const logSource = "provisioner"

// say records what is wrong, or that nothing is any more, for juju status.
func (l *lead) say(ctx context.Context, s snapshot, wrong []string) error {
	wrong = wrong[:min(len(wrong), state.MaxTroubles)]
	changed := !slices.Equal(wrong, l.wrong)
	if changed {
		for _, w := range wrong {
			l.Log.Warn("provisioner is in trouble", "error", w)
		}
		l.wrong = wrong
	}
	if slices.Equal(wrong, s.trouble.Messages) && l.blind.due.Equal(s.trouble.NextRetry) {
		return nil
	}
	err := l.leadership.Update(ctx, func(tx *state.Tx) error { return tx.SetProvisionerTrouble(wrong, l.Now(), l.blind.due) })
	if err != nil || !changed {
		return err
	}
	var lines []state.LogLine
	for _, w := range wrong {
		lines = append(lines, state.LogLine{Time: l.Now(), Level: "WARNING", Message: "is in trouble: " + w})
	}
	if len(wrong) == 0 {
		lines = []state.LogLine{{Time: l.Now(), Level: "INFO", Message: "goes on again"}}
	}
	return l.State.AppendLog(ctx, logSource, lines)
}
