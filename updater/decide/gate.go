package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// decideGate opens the gate of a barrier: all servers have come to the step of at, and may go on.
func (s Snapshot) decideGate(now time.Time, at record.Status) Action {
	r := s.Current
	g := record.Gate{
		Request:   r.ID,
		StartedAt: r.StartedAt,
		Attempt:   r.Attempt,
		Step:      at.Step,
		StepName:  at.StepName,
		Plan:      at.Plan,
		At:        now,
		Progress:  r.Progress(s.Workers),
	}

	return Action{
		Verb:    Open,
		Why:     fmt.Sprintf("all servers have come to step %d", at.Step),
		Changes: []updater.Change{updater.Put(keys.Gate, g)},
	}
}
