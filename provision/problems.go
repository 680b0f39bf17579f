package provision

import (
	"context"
	"slices"

	"bijou/state"
)

// logSource is the name of the provisioner's log.
const logSource = "provisioner"

// juju status shows what is reported, and that nothing is wrong any more.
func (l *leader) reportProblems(ctx context.Context, s snapshot, problems []string) error {
	problems = problems[:min(len(problems), state.MaxTroubleMessages)]
	changed := !slices.Equal(problems, l.problems)
	if changed {
		for _, w := range problems {
			l.Log.Warn("provisioner is in trouble", "error", w)
		}
		l.problems = problems
	}
	if slices.Equal(problems, s.trouble.Messages) && l.listFailure.due.Equal(s.trouble.NextRetry) {
		return nil
	}
	err := l.leadership.Update(ctx, func(tx *state.Tx) error { return tx.SetProvisionerTrouble(problems, l.Now(), l.listFailure.due) })
	if err != nil || !changed {
		return err
	}
	var lines []state.LogLine
	for _, w := range problems {
		lines = append(lines, state.LogLine{Time: l.Now(), Level: "WARNING", Message: "is in trouble: " + w})
	}
	if len(problems) == 0 {
		lines = []state.LogLine{{Time: l.Now(), Level: "INFO", Message: "goes on again"}}
	}
	return l.State.AppendLog(ctx, logSource, lines)
}
