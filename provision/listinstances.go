package provision

import (
	"context"
	"fmt"
	"slices"

	"bijou/provision/provider"
	"bijou/state"
)

// listFailure says for how long the provider has not listed its instances, and why.
type listFailure struct {
	backoff
	err error
}

// After an error the provider is asked again later and later, whatever changes meanwhile.
func (l *leader) listInstances(ctx context.Context) ([]provider.Instance, error) {
	if l.Now().Before(l.listFailure.due) {
		return nil, l.listFailure.err
	}
	asked, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	have, err := l.Provider.Instances(asked)
	switch {
	case err == nil:
		l.listFailure = listFailure{}
		return have, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.Err() != nil:
		err = fmt.Errorf("the provider has not answered for %s", listTimeout)
	}
	n := l.listFailure.attempts
	l.listFailure = listFailure{
		backoff{n + 1, l.Now().Add(min(retryDelay(n), planInterval))},
		fmt.Errorf("cannot list instances, so none is started or stopped: %w", err),
	}
	return nil, l.listFailure.err
}

// logSource is the name of the provisioner's log.
const logSource = "provisioner"

// juju status shows what is reported, and that nothing is wrong any more.
func (l *leader) reportProblems(ctx context.Context, s snapshot, wrong []string) error {
	wrong = wrong[:min(len(wrong), state.MaxTroubles)]
	changed := !slices.Equal(wrong, l.problems)
	if changed {
		for _, w := range wrong {
			l.Log.Warn("provisioner is in trouble", "error", w)
		}
		l.problems = wrong
	}
	if slices.Equal(wrong, s.trouble.Messages) && l.listFailure.due.Equal(s.trouble.NextRetry) {
		return nil
	}
	err := l.leadership.Update(ctx, func(tx *state.Tx) error { return tx.SetProvisionerTrouble(wrong, l.Now(), l.listFailure.due) })
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
