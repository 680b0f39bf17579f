package status

import (
	"bijou/state"
	"bijou/state/sanitize"
)

func (w *input) hideSecrets() {
	for i := range w.units {
		hideSecrets(&w.units[i].Status.Message)
	}
	for service, s := range w.statuses {
		hideSecrets(&s.Message)
		w.statuses[service] = s
	}
	for _, flow := range w.workflows {
		hideInFailure(flow.Failure)
	}
	for _, relations := range w.relationStates {
		for _, r := range relations {
			hideInFailure(r.Failure)
		}
	}
	for _, p := range w.present {
		if p.Trouble != nil {
			hideSecrets(&p.Trouble.Message)
		}
	}
	for id, m := range w.machines {
		hideSecrets(&m.Message)
		w.machines[id] = m
	}
	if w.trouble != nil {
		for i := range w.trouble.Messages {
			hideSecrets(&w.trouble.Messages[i])
		}
	}
}

func hideInFailure(f *state.Failure) {
	if f != nil {
		hideSecrets(&f.Message)
		hideSecrets(&f.Stderr)
	}
}

func hideSecrets(text *string) { *text = sanitize.HideSecrets(*text) }
