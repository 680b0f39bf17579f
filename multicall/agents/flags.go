package agents

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/metrics"
	"bijou/state/osutil"
)

//go:embed help
var helpFiles embed.FS

// daemonFlags say where a daemon finds its environment: a folder of BIJOU_HOME, or the
// parts of one by themselves.
type daemonFlags struct {
	Env     string `placeholder:"DIR" type:"path" help:"Use the model in this directory, which bootstrap has made."`
	State   string `placeholder:"URL" help:"Use the model's state at this URL; default: that of --env."`
	Dir     string `placeholder:"DIR" type:"path" help:"The machine's folder; default: below --env."`
	Tools   string `placeholder:"DIR" type:"path" help:"The folder of hook tools; default: as --env says, else this binary's."`
	Metrics string `env:"BIJOU_METRICS" placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address, as 127.0.0.1:9300."`
}

// loadEnvironment fills in the flags from the environment's record. If the record names a different binary
// than this one, it returns toolsReexec: the daemon must re-execute as that binary. A service manager, or a
// shell's PATH, can have started one that was replaced since.
func (p *daemonFlags) loadEnvironment() (home.Environment, error) {
	var e home.Environment

	if p.Env != "" {
		var err error
		if e, err = home.Load(p.Env); err != nil {
			return e, err
		}
		if e.Phase == home.Removing {
			return e, fmt.Errorf("cannot run for model %q: %w", e.Name, home.ErrRemoving)
		}
		if p.Tools == "" && !applet.IsSameFile("/proc/self/exe", filepath.Join(e.ToolsDir(), "bijou")) {
			return e, toolsReexec{e.ToolsDir()}
		}
		p.State, p.Tools = cmp.Or(p.State, e.State), cmp.Or(p.Tools, e.ToolsDir())
	}
	if p.State == "" {
		return e, console.Hint(console.Usage(errors.New("no model given")),
			"give --env DIR, or --state URL")
	}

	if p.Tools == "" {
		binary, err := applet.ExecutablePath()
		if err != nil {
			return e, err
		}
		p.Tools = filepath.Dir(binary)
	}

	return e, nil
}

// makeMachineDir makes the machine's directory, which is missing at the first start on a host, and returns
// its path.
func (p *daemonFlags) makeMachineDir(e home.Environment, id string) (string, error) {
	if p.Dir == "" && p.Env == "" {
		return "", console.Hint(console.Usage(errors.New("it is not said where the machine's folder is")),
			"give --env DIR, or --dir DIR")
	}

	dir := cmp.Or(p.Dir, e.MachineDir(id))
	err := osutil.MkdirAll(dir, 0o755)
	if err != nil {
		return dir, fmt.Errorf("cannot make the machine's folder: %w", err)
	}

	return dir, nil
}

// withState opens the environment's state and calls f. It waits for a store that is away, since nobody may
// be there to start the daemon again. Meanwhile it serves metrics, if they are wanted, and logs faults of
// the store's servers.
func (p *daemonFlags) withState(ctx context.Context, f func(s *state.State) error) error {
	var s *state.State
	err := daemon.RetryWhileAway(ctx, func() (err error) {
		s, err = state.Open(ctx, p.State)
		return err
	})
	if err != nil {
		return err
	}

	if p.Metrics != "" {
		s.SetMetrics(metrics.NewRegistry())
	}
	stop, err := daemon.ServeMetrics(p.Metrics, s.Metrics())
	if err == nil {
		err = daemon.WhileAdvised(ctx, s, func() error { return f(s) })
		stop()
	}

	return errors.Join(err, s.Close())
}
