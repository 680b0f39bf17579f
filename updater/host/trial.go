package host

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"bijou/state/executable"
)

// tryTimeout bounds one trial, also on a slow machine.
const tryTimeout = 2 * time.Minute

var trialCommands = [][]string{{"neco", "plan"}, {"neco-worker", "--help"}, {"neco-updater", "--help"}}

// tryProgram has the program show its plan, and its daemons their help, before it takes
// anything's place: one for another architecture, or that cannot read the manifest beside
// it, fails here, where nothing has to be undone.
func tryProgram(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	for _, trial := range trialCommands {
		if out, err := tryAs(ctx, program, trial); err != nil {
			return fmt.Errorf("cannot install the release: its program does not run as %q: %w: %s", strings.Join(trial, " "), err, tail(out))
		}
	}
	return nil
}

func tryAs(ctx context.Context, program string, args []string) (out []byte, err error) {
	err = executable.Retry(tryTimeout, func() (err error) {
		c := exec.CommandContext(ctx, program)
		c.Args, c.WaitDelay = args, killDelay
		out, err = c.CombinedOutput()
		return err
	})
	return out, err
}
