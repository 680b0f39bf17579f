package multicall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bijou/agent"
	"bijou/agent/do"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/tools"
	"bijou/multicall/agents"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/dashboard"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/multicall/neco"
	"bijou/multicall/providers"
	"bijou/multicall/systemd"
	"bijou/provision/local"
	"bijou/provision/local/process"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/childenv"
	"bijou/state/unitdir"
)

// runJuju runs the applet juju. If the first word is --version, it only prints bijou's version.
func runJuju(c applet.Call) int {
	if len(c.Args) > 0 && c.Args[0] == "--version" {
		return runBijou(applet.Call{Args: []string{"version"}, Streams: c.Streams})
	}

	ctx, stop := applet.BeginCommand(c)
	defer stop()
	parts := jujuParts()
	parts.Fault = c.Fault // for tests
	return juju.Main(ctx, c.Streams, parts, c.Args)
}

// jujuParts returns the parts of other packages that the commands of juju need.
func jujuParts() juju.Parts {
	return juju.Parts{
		Version:   applet.Version,
		Applets:   appletNames(),
		HookTools: hookToolNames(),

		ToolSummary: tools.Summary,
		ToolHelp:    toolHelp,

		Processes: processes{},
		Claims:    claims{},
		Services:  services{},
		Hooks:     hooks{},
		Providers: providers.All{},

		Owed:        agent.Owed,
		SweepTools:  agents.SweepTools,
		RemoveFiles: removeAgentFiles,
		OpenFleet:   openFleet,
		OtherJuju:   otherJuju,
	}
}

// toolHelp returns the text that a hook tool prints for --help, or "" if there is no such tool.
func toolHelp(name string) string {
	r, _ := tools.RunWithoutHook([]string{name, "--help"})
	return string(r.Stdout)
}

// openFleet opens the boot servers for the dashboard.
func openFleet(ctx context.Context, s console.Streams) (*dashboard.Fleet, error) {
	parts, err := necoParts()
	if err != nil {
		return nil, err
	}
	return neco.OpenFleet(ctx, s, parts)
}

// processes implements juju.Processes.
type processes struct{}

// Start starts the agent of machine 0: as a systemd service if there is one for the environment, or else as a background
// process. alive reports whether the agent is running.
func (processes) Start(e home.Environment) (alive func() bool, err error) {
	if systemd.Manages(e) {
		// If Start succeeds, Hint returns nil.
		err := console.Hint(systemd.Start(e), "as root: systemctl start "+systemd.MachineUnitName(e))
		return func() bool { return systemd.IsActive(e) }, err
	}

	started, err := process.Detach(providers.MachineProcess(e, "0", childenv.Background))
	return started.Alive, err
}

// Halt ends the agents of the machine in dir. An agent that does not end within grace is killed.
func (processes) Halt(ctx context.Context, dir string, grace time.Duration) error {
	// local.Halt ends only an agent that has locked the directory. findAgents also finds one that has not locked
	// it yet.
	for _, identity := range findAgents(dir) {
		if err := process.Stop(ctx, identity, grace); err != nil {
			return err
		}
	}
	return local.Halt(ctx, dir, grace)
}

// claims implements juju.Claims.
type claims struct{}

// Holder returns the holder of a claim for a directory on this host.
func (claims) Holder(dir string) (state.Holder, error) { return daemon.HolderOf(dir) }

// IsAlive reports whether the holder is a running process on this host.
func (claims) IsAlive(h state.Holder) bool { return daemon.IsAlive(h) }

// IsStopped reports whether the holder is a process on this host that a signal or a debugger has stopped.
func (claims) IsStopped(h state.Holder) bool { return daemon.IsStopped(h) }

// removeAgentFiles removes the environment's unit files, mounts and sockets on this host. It only logs an error about
// the unit files. A unit file that stays is harmless, since its service finds no environment.
func removeAgentFiles(e home.Environment) error {
	if err := systemd.RemoveEnvironment(e); err != nil {
		slog.Warn("the model's unit files stay", "error", err)
	}

	dirs, err := e.MachineDirs()
	if err != nil {
		return err
	}

	// Continue after an error, so that everything else is removed.
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, unitdir.ReleaseMachine(dir))
	}
	errs = append(errs, agent.RemoveSockets(e.UUID))
	return errors.Join(errs...)
}

// Running returns the PID of the process that has locked the machine's directory, or 0 if there is none.
func (processes) Running(dir string) (pid int, err error) {
	holder, err := process.Holder(dir)
	if errors.Is(err, process.ErrGone) {
		return 0, nil
	}
	return holder.PID, err
}

// Process is like Running. If no process has locked the directory, it looks for an agent of the machine that has not
// locked it yet, or no longer has the lock. It returns 0 if there is none either.
func (p processes) Process(dir string) (pid int, err error) {
	pid, err = p.Running(dir)
	if err != nil {
		return pid, err
	}
	if pid != 0 {
		return pid, nil
	}

	if agents := findAgents(dir); len(agents) > 0 {
		pid = agents[0].PID
	}
	return pid, nil
}

// findAgents returns the processes that were started as agents of the machine in dir, even if they
// have not locked the directory yet.
func findAgents(dir string) []process.Identity {
	// dir is ENVIRONMENT/machines/ID.
	e := home.Environment{Dir: filepath.Dir(filepath.Dir(dir))}
	// The arguments do not depend on the kind of child, nor on other fields of the environment.
	return process.FindByArgs(providers.MachineProcess(e, filepath.Base(dir), childenv.Machine).Args)
}

// otherJuju returns the path of a different program called juju, or "" if PATH has none.
func otherJuju() string {
	path, _ := applet.FindOther("juju")
	return path
}

// services implements juju.Services.
type services struct{}

// Of returns the systemd service of a process, or "".
func (services) Of(pid int) string { return systemd.ServiceOf(pid) }

// Stop stops a systemd service, and waits until it has ended.
func (services) Stop(service string) error { return systemd.Stop(service) }

// AtBoot returns the environment's systemd service, and whether systemd starts it at boot.
func (services) AtBoot(e home.Environment) (service string, starts bool) {
	if !systemd.IsRunning() {
		return "", false
	}
	return systemd.MachineUnitName(e), systemd.Manages(e)
}

// strayTimeout is the time that a process has to end if a hook has left it running.
const strayTimeout = 5 * time.Second

// hooks implements juju.Hooks.
type hooks struct{}

// Run runs a command with the hook tools, as a hook of the unit or, without a unit, for the operator. On the
// command's PATH, the hook tools and juju are this binary.
func (hooks) Run(ctx context.Context, s *state.State, c juju.HookCommand) (juju.HookOutcome, error) {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return juju.HookOutcome{Exit: 1}, err // an outcome has a code even with an error
	}

	outcome, err := do.Run(ctx, do.Options{
		State:      s,
		Unit:       c.Unit,
		Relation:   c.Relation,
		Dialect:    hookapi.Dialect(c.Dialect),
		Command:    c.Command,
		Shell:      os.Getenv("SHELL"),
		Streams:    do.Streams{In: c.Streams.In, Out: c.Streams.Out, Err: c.Streams.Err},
		Environ:    append(os.Environ(), c.Environ...),
		Links:      do.Links{Names: append(hookToolNames(), "juju"), Binary: binary},
		Folder:     agent.DoFolder,
		MachineDir: c.MachineDir,
		SecretKeys: c.SecretKeys,
	})

	return juju.HookOutcome(outcome), err
}

// Quiesce keeps hooks of the unit from beginning, as described in [juju.Hooks].
func (hooks) Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (juju.Quiesced, error) {
	quiesced, err := agent.Quiesce(ctx, machineDir, unit, onWait)
	if errors.Is(err, agent.ErrUnaware) {
		return nil, juju.ErrCannotQuiesce
	}
	return quiesced, err
}

// EndStrays ends the processes that hooks have left running. It finds them by word, a variable NAME=VALUE of their
// environment. It stops at the first process that it cannot end.
func (hooks) EndStrays(ctx context.Context, word string) error {
	for _, stray := range process.FindByEnviron(word) {
		description := process.Describe(stray) // before the process is gone
		if err := process.Stop(ctx, stray, strayTimeout); err != nil {
			return fmt.Errorf("cannot end %s: %w", description, err)
		}
	}

	return nil
}

type jujudGrammar struct {
	Version struct{} `cmd:"" help:"Print the version of Juju that charms see."`
}

// runJujud runs the applet jujud, which only prints the version of Juju that charms see, with the suffix -bijou.
func runJujud(c applet.Call) int {
	var grammar jujudGrammar
	_, err := console.Parse(c.Streams, console.Command{Name: "jujud", Grammar: &grammar, Help: helpFiles}, c.Args)
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}

	fmt.Fprintln(c.Streams.Out, cmp.Or(os.Getenv("JUJU_VERSION"), charm.JujuVersion)+"-bijou")
	return console.ExitOK
}
