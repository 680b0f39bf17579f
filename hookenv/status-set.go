package hookenv

import (
	"context"
	"errors"
	"slices"

	"bijou/hookenv/hookapi"
)

func statusSet() Tool {
	return Tool{
		Name:     "status-set",
		Summary:  "set the status of the workload",
		Usage:    "[--application] maintenance|blocked|waiting|active [MSG]",
		Notes:    "It takes effect at once, whatever becomes of the hook.",
		Examples: []string{"status-set active", `status-set blocked "needs a database"`},
		prepare: func(f *flagSet) runner {
			s := &statusSetter{}
			f.addBool(&s.application, "set the status of the service, not of the unit", "application")
			return s.run
		},
	}
}

type statusSetter struct{ application bool }

func (s *statusSetter) run(ctx context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("invalid args, require <status> [message]")
	}
	words := []string{"maintenance", "blocked", "waiting", "active"}
	if !slices.Contains(words, inv.args[0]) {
		return usagef("invalid status %q, expected one of %v", inv.args[0], words)
	}
	if err := inv.checkUnitCall(2); err != nil {
		return err
	}
	status := hookapi.Status{Status: inv.args[0]}
	if len(inv.args) > 1 {
		status.Message = escapeInvalidUTF8(inv.args[1])
	}
	err := inv.hook.SetStatus(ctx, s.application, status)
	if errors.Is(err, hookapi.ErrNotLeader) {
		return errors.New("this unit is not the leader")
	}
	return err
}
