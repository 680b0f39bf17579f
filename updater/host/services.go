package host

import (
	"context"
	"errors"
	"fmt"
)

// Services controls the units of components. Each call is idempotent.
type Services interface {
	// Start starts the unit, and returns when it has been started: it may not answer
	// yet. One that runs is left alone.
	Start(ctx context.Context, unit string) error
	// Restart stops the unit, if it runs, and starts it.
	Restart(ctx context.Context, unit string) error
	// Stop returns when the unit does not run any more, and keeps it from being
	// started by anything but Start and Restart, also at the machine's next boot.
	// One that never ran, or is not known, is stopped.
	Stop(ctx context.Context, unit string) error
	// IsActive reports whether the unit runs. One that is about to is not active yet.
	IsActive(ctx context.Context, unit string) (bool, error)
	// Files returns the contents of the unit's files; empty if they are not known.
	Files(ctx context.Context, unit string) ([]byte, error)
	// RunDetached runs a command as a unit of that name, which goes on whatever
	// becomes of the caller, and returns when it has ended. It first waits for one of
	// that name that runs already. The output goes to the log.
	RunDetached(ctx context.Context, d Detached) error
}

// Detached is a command that outlives the process that runs it.
type Detached struct {
	Name    string // the unit's, without ".service"
	Title   string // what it does; another title is another command
	Command []string
	Env     []string
	Log     string // file
	// Resume takes the failure of one of that title that ran before for its own:
	// what it did may have ended its caller before that could see it.
	Resume bool
	// Join takes the result of one of that title for its own that runs already, if it
	// can be known.
	Join bool
}

func forEachUnit(ctx context.Context, units []string, do func(ctx context.Context, unit string) error) error {
	for _, u := range units {
		if err := retryHung(ctx, func(ctx context.Context) error { return do(ctx, u) }); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) checkActive(ctx context.Context, units []string) error {
	for _, u := range units {
		runs, err := h.services.IsActive(ctx, u)
		if err != nil {
			return err
		}
		if !runs {
			return fmt.Errorf("%s does not run", u)
		}
	}
	return nil
}

var errNoSystemd = errors.New("process 1 of this machine is not systemd")
