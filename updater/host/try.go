package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// tryLimit is how long a program that is tried may take, also where it is slow.
const tryLimit = 2 * time.Minute

// try has a program show its plan, as neco, before it takes anything's place: what
// is for another machine, or cannot read the manifest beside it, fails here and not
// where nothing could be undone.
func try(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	var out []byte
	err := until(ctx, func() (bool, error) {
		c := exec.CommandContext(ctx, program)
		c.Args, c.WaitDelay = []string{"neco", "plan"}, killDelay
		var err error
		out, err = c.CombinedOutput()
		if errors.Is(err, syscall.ETXTBSY) { // a child that was forked meanwhile holds it open for a moment
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("cannot install the release: its program does not show its plan: %w: %s", err, tail(out))
	}
	return nil
}
