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

// daemonFlags locate the environment of a daemon: a directory in BIJOU_HOME, or the parts of an environment
// in separate flags.
type daemonFlags struct {
	Env     string `placeholder:"DIR" type:"path" help:"Use the model in this directory, which bootstrap has created."`
	State   string `placeholder:"URL" help:"Use the model's state at this URL; default: the state of --env."`
	Dir     string `placeholder:"DIR" type:"path" help:"Use this directory for the machine; default: below --env."`
	Tools   string `placeholder:"DIR" type:"path" help:"Take hook tools from this directory; default: from --env, or else this binary's."`
	Metrics string `env:"BIJOU_METRICS" placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address, as 127.0.0.1:9300."`
}

// loadEnvironment loads the environment of --env, and sets the flags State and Tools if they were not given. Without
// --env, it needs --state, returns an empty environment, and takes the directory of this binary as the default of
// Tools. It returns ErrRemoving if the environment is being removed. If the environment names a different binary and
// --tools was not given, it returns the error toolsReexec, so that the daemon continues as that binary. This happens
// if a service manager, or a shell's PATH, has started a binary that has since been replaced.
func (p *daemonFlags) loadEnvironment() (home.Environment, error) {
	var e home.Environment
	if p.Env != "" {
		var err error
		if e, err = p.loadRecord(); err != nil {
			return e, err
		}
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

// loadRecord loads the environment of --env for loadEnvironment. It sets the flags State and Tools from the
// environment's record if they were not given. It returns ErrRemoving if the environment is being removed. If
// --tools was not given, it returns toolsReexec unless this process already runs the binary that the record names.
func (p *daemonFlags) loadRecord() (home.Environment, error) {
	e, err := home.Load(p.Env)
	if err != nil {
		return e, err
	}
	if e.Phase == home.Removing {
		return e, fmt.Errorf("cannot run the agents of model %q: %w", e.Name, home.ErrRemoving)
	}

	runsNamedBinary := applet.IsSameFile("/proc/self/exe", filepath.Join(e.ToolsDir(), "bijou"))
	if p.Tools == "" && !runsNamedBinary {
		return e, toolsReexec{e.ToolsDir()}
	}

	p.State = cmp.Or(p.State, e.State)
	p.Tools = cmp.Or(p.Tools, e.ToolsDir())
	return e, nil
}

// makeMachineDir returns the machine's directory: that of --dir or, without --dir, the one below --env. It creates
// the directory if it is missing, as at the first start on a host. If neither flag is given, it returns a usage error.
func (p *daemonFlags) makeMachineDir(e home.Environment, id string) (string, error) {
	if p.Dir == "" && p.Env == "" {
		return "", console.Hint(console.Usage(errors.New("no machine directory given")),
			"give --env DIR, or --dir DIR")
	}

	dir := cmp.Or(p.Dir, e.MachineDir(id))
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the machine's directory: %w", err)
	}

	return dir, nil
}

// withState opens the environment's state, calls f, and closes the state. If the store is unreachable, it waits until
// the store answers or ctx is done, since perhaps no service manager would start the daemon again. During f, it serves
// metrics if --metrics is given, and logs faults of the store's servers.
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
	// Without --metrics, this serves nothing.
	stopMetrics, err := daemon.ServeMetrics(p.Metrics, s.Metrics())
	if err != nil {
		return errors.Join(err, s.Close())
	}

	err = daemon.WhileAdvised(ctx, s, func() error { return f(s) })
	stopMetrics()
	return errors.Join(err, s.Close())
}
