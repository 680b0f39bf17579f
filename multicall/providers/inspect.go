package providers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/agent"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/provision/nspawn"
	"bijou/provision/plugin"
	"bijou/provision/provider"
	"bijou/provision/ssh"
	"bijou/state"
)

// Access returns the access to machine 0, or to a machine that has an instance. A machine of a plugin is reached by ssh
// at its public address.
func (All) Access(e home.Environment, env state.Environment, m state.Machine) (juju.Access, error) {
	switch {
	case m.ID == "0", env.Provider == state.ProviderLocal:
		return accessLocal(e, m)
	case env.Provider == ssh.Name:
		return accessSSHHost(e, env, m)
	case env.Provider == nspawn.Name:
		return accessContainer(e, m)
	case m.Addresses.Public == "":
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: the provider %q has not reported its address",
			m.ID, env.Provider)
	}

	// The provider does not report the machine's directory, so the directory of a login stands for it.
	return sshAccess(ssh.Client{Destination: m.Addresses.Public}, "."), nil
}

// accessLocal returns the access to a machine that is a directory on this host.
func accessLocal(e home.Environment, m state.Machine) (juju.Access, error) {
	machineDir := e.MachineDir(m.ID)
	if _, err := os.Stat(machineDir); err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: its directory is not on this host: %w", m.ID, err)
	}

	return juju.Access{
		Dir:  machineDir,
		Copy: []string{"cp"},
		Run: func(dir, line string, _ bool) *exec.Cmd {
			return exec.Command("sh", "-c", loginShell, "sh", dir, line)
		},
	}, nil
}

// loginShell is a script for sh. It changes to the directory in its first argument, unless that is empty. It then runs
// its second argument in the user's login shell, as sshd does. If the second argument is empty, the login shell reads
// stdin. For users who cannot log in, the script uses sh.
const loginShell = `[ -z "$1" ] || cd -P "$1" || exit 1
SHELL=$(getent passwd "$(id -u)" | cut -d: -f7)
case $SHELL in */nologin | */false) SHELL= ;; esac
[ -x "$SHELL" ] || SHELL=/bin/sh
export SHELL
[ -n "$2" ] || exec "$SHELL"
exec "$SHELL" -c "$2"`

// accessSSHHost returns the access to a machine that is a host of the provider ssh.
func accessSSHHost(e home.Environment, env state.Environment, m state.Machine) (juju.Access, error) {
	p, err := ssh.New(providerWanted(e, env).Environment)
	if err != nil {
		return juju.Access{}, err
	}
	c, err := p.Client(m.InstanceID)
	if err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}

	machineDir := home.Environment{Dir: c.Dir}.MachineDir(m.ID) // c.Dir is the environment's directory on that host
	return sshAccess(c, machineDir), nil
}

// sshAccess returns the access to a host by the programs ssh and scp. machineDir is a directory on that host.
func sshAccess(c ssh.Client, machineDir string) juju.Access {
	host := c.Destination
	addressAt := strings.Index(host, "@") + 1 // 0 without a user
	if strings.Contains(host[addressAt:], ":") {
		// Without brackets, scp would read an IPv6 address as a host and a file.
		host = host[:addressAt] + "[" + host[addressAt:] + "]"
	}

	return juju.Access{
		Dir:  machineDir,
		Host: host,
		Copy: append([]string{"scp"}, c.Options...),
		Run: func(dir, line string, terminal bool) *exec.Cmd {
			args := slices.Clone(c.Options)
			if terminal {
				args = append(args, "-t")
			}

			// Without a command, start a shell.
			if line == "" {
				line = `exec "${SHELL:-/bin/sh}"`
			}

			if dir != "" {
				// The command is on its own line, so that a syntax error that the shell prints quotes only the command.
				line = "cd -P " + juju.QuoteShellWord(dir) + " || exit 1\n" + line
			}

			return exec.Command("ssh", append(args, "--", c.Destination, line)...)
		},
	}
}

// accessContainer returns the access to a machine that is a container. It returns an error for all users
// except root, since only root can enter a container.
func accessContainer(e home.Environment, m state.Machine) (juju.Access, error) {
	if os.Geteuid() != 0 {
		return juju.Access{}, console.Hint(
			fmt.Errorf("cannot reach machine %s: only root can enter a container", m.ID),
			"use sudo, with BIJOU_HOME="+filepath.Dir(e.Dir),
		)
	}

	pid, err := findInitPID(m.InstanceID)
	if err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}

	return juju.Access{
		Dir:    e.MachineDir(m.ID),
		NoCopy: "bijou does not copy files of containers: only programs in the container can reach them safely",
		Run: func(dir, line string, _ bool) *exec.Cmd {
			c := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-a", "--", "sh", "-c", loginShell, "sh", dir, line)
			// The command gets no variable of this host except TERM.
			c.Env = []string{
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"HOME=/root",
				"LANG=C.UTF-8",
				"TERM=" + cmp.Or(os.Getenv("TERM"), "dumb"),
			}
			return c
		},
	}, nil
}

// findInitPID returns the id of the container's first process. This process is the child of the container's
// systemd-nspawn.
func findInitPID(name string) (int, error) {
	// Glob fails only for an invalid pattern.
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commands {
		data, err := os.ReadFile(path)
		if err != nil {
			// The process has exited.
			continue
		}

		words := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
		if filepath.Base(words[0]) == "systemd-nspawn" && slices.Contains(words, "--machine="+name) {
			return firstChild(filepath.Base(filepath.Dir(path)))
		}
	}

	return 0, fmt.Errorf("the container %q is not running", name)
}

// firstChild returns the id of the first child of a container's systemd-nspawn, whose process id is pid.
func firstChild(pid string) (int, error) {
	data, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return 0, err
	}

	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	child, err := strconv.Atoi(first)
	if err != nil {
		return 0, errors.New("the container has no process")
	}

	return child, nil
}

// stateTimeout limits the time to read the provider's configuration from the state. It is short, since an environment can
// be destroyed without that configuration.
const stateTimeout = 5 * time.Second

// FreeInstances stops all instances that the environment's provider has created. It calls progress with the number
// of stopped instances. It does nothing for the provider "local", whose machines are directories of the
// environment itself. If a plugin's configuration cannot be read, it logs a warning and stops no instances, so
// that the environment can still be destroyed.
func (All) FreeInstances(ctx context.Context, e home.Environment, progress func(state.Steps)) error {
	if e.Provider == state.ProviderLocal {
		return nil
	}
	wanted, err := readWanted(ctx, e)
	if err != nil {
		slog.Warn("cannot remove the provider's instances", "provider", e.Provider, "error", err)
		return nil
	}

	p := plugin.NewClient(plugin.Options{
		Name:    e.Provider,
		Sockets: socketFolder(e),
		Find:    func(sum string) (string, error) { return findProvider(e.Provider, sum, e) },
		Wanted:  func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer p.Close()

	return stopInstances(ctx, p, e.UUID, progress)
}

const (
	// maxStopPasses is how many times instances are listed and stopped. A provisioner on a different host may
	// start some of them again, if it has not noticed yet that the environment is being removed.
	maxStopPasses = 5
	// maxConcurrentStops is how many instances are stopped at the same time.
	maxConcurrentStops = 8
)

// stopInstances stops all instances of the environment. It lists and stops them up to maxStopPasses times,
// since a provisioner may start instances at the same time. It returns an error if it cannot list or stop
// instances, or if some are still running after the last pass.
func stopInstances(ctx context.Context, p provider.Provider, uuid string, progress func(state.Steps)) error {
	for range maxStopPasses {
		running, err := listInstances(ctx, p, uuid)
		if err != nil {
			return err
		}
		if len(running) == 0 {
			return nil
		}

		if err := stopConcurrently(ctx, p, running, progress); err != nil {
			return err
		}
	}

	remaining, err := listInstances(ctx, p, uuid)
	if err != nil {
		return err
	}
	if len(remaining) > 0 {
		return fmt.Errorf(
			"some instances are still running, or run again, such as that of machine %s: a provisioner may be running on another host",
			remaining[0].Machine,
		)
	}

	return nil
}

// listInstances lists the environment's instances. It leaves out instances of other environments, and instances
// without an id.
func listInstances(ctx context.Context, p provider.Provider, uuid string) ([]provider.Instance, error) {
	instances, err := p.Instances(ctx)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(instances, func(i provider.Instance) bool {
		return i.ID == "" || i.Environment != uuid
	}), nil
}

// progressInterval is how often progress is reported while no instance has stopped.
const progressInterval = 100 * time.Millisecond

// stopConcurrently stops the instances, several at a time. If it cannot stop an instance, it continues with the others,
// counts that instance as done in the progress, and returns all errors at the end.
func stopConcurrently(
	ctx context.Context,
	p provider.Provider,
	instances []provider.Instance,
	progress func(state.Steps),
) error {
	errs := make([]error, len(instances))
	indexes := make(chan int) // of the instances to stop
	ended := make(chan struct{})
	var goroutines sync.WaitGroup
	defer goroutines.Wait()

	for range min(maxConcurrentStops, len(instances)) {
		goroutines.Go(func() {
			for i := range indexes {
				instance := instances[i]
				if err := p.Stop(ctx, instance.ID); err != nil {
					errs[i] = fmt.Errorf("machine %s: %w", instance.Machine, err)
				}
				ended <- struct{}{}
			}
		})
	}

	goroutines.Go(func() {
		defer close(indexes)
		for i := range instances {
			indexes <- i
		}
	})

	tick := time.NewTicker(progressInterval)
	defer tick.Stop()

	// Each instance sends to ended once, so after this loop all goroutines end.
	steps := state.Steps{What: "instances stopped", Total: len(instances)}
	progress(steps)
	for steps.Done < steps.Total {
		select {
		case <-ended:
			steps.Done++
		case <-tick.C:
			// Report the same number again, so that a progress bar keeps moving.
		}
		progress(steps)
	}

	return errors.Join(errs...)
}

// readWanted returns the environment that the provider's process must serve. It returns an error if the state
// cannot be read, or has a different UUID, unless the provider is part of the binary. Only the state has the
// checksum of an executable outside the binary.
func readWanted(ctx context.Context, e home.Environment) (w plugin.Wanted, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()

	// Without the state, a builtin provider still finds its instances by the environment's UUID.
	env := state.Environment{Name: e.Name, UUID: e.UUID, Provider: e.Provider}
	// env stays like this unless the state has the environment's record, with the same UUID.
	s, err := state.Open(ctx, e.State)
	if err == nil {
		var recorded state.Environment
		recorded, err = state.Read(ctx, s, (*state.View).Environment)
		if err == nil && recorded.UUID != e.UUID {
			err = fmt.Errorf("the model's record is damaged: its UUID is %q, not %q", recorded.UUID, e.UUID)
		}
		if err == nil {
			env = recorded
		}
		err = errors.Join(err, s.Close())
	}

	// A builtin provider can serve without the state's configuration.
	if isBuiltin(e.Provider) {
		err = nil
	}
	return providerWanted(e, env), err
}

// providerName matches the names of providers. It is strict, since a provider's name is a part of a file name.
var providerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
})

// Inspect returns the capabilities of a new environment's provider, and returns an error if a builtin provider
// cannot have machines on this host. For a builtin provider, the result includes the only series of its machines,
// if there is only one. For a plugin, it includes the checksum of the executable. Inspect calls a builtin provider
// in this process, and starts a plugin as a process of its own.
func (All) Inspect(ctx context.Context, e home.Environment, config map[string]string) (juju.Provider, error) {
	env := state.Environment{Name: e.Name, UUID: e.UUID, Provider: e.Provider, Config: config}
	wanted := providerWanted(e, env)
	builtin, ok := findBuiltin(e.Provider)
	if !ok {
		return inspectPlugin(ctx, e, wanted)
	}

	p, err := builtin.create(wanted.Environment)
	if err != nil {
		return juju.Provider{}, err
	}

	capabilities, err := p.Capabilities(ctx)
	inspected := jujuProvider(capabilities)
	if err != nil {
		return inspected, err
	}
	if builtin.checkHost == nil {
		// The machines can have any series.
		return inspected, nil
	}

	inspected.Series, err = builtin.checkHost(wanted.Environment.Config)
	return inspected, err
}

// CheckSettings returns an error if an operator gives a setting that the provider called name does not have or, for
// some settings, an invalid value. It ignores settings without the prefix of the provider's name. It checks only
// providers inside the binary, since a plugin checks its own settings.
func (All) CheckSettings(name string, given map[string]string) error {
	builtin, ok := findBuiltin(name)
	if !ok {
		return nil
	}
	return builtin.checkSettings(state.Environment{Provider: name, Config: given}.ProviderConfig())
}

// CheckSeries returns an error if the provider's machines cannot have the series. It returns nil if it cannot find
// out: for a plugin, for a provider without such a check, and on a host other than that of machine 0.
func (All) CheckSeries(e home.Environment, env state.Environment, series string) error {
	builtin, ok := findBuiltin(env.Provider)
	if !ok || builtin.checkSeries == nil {
		return nil
	}
	// Only the host of machine 0 has the directory of machine 0.
	if _, err := os.Stat(e.MachineDir("0")); err != nil {
		return nil
	}

	return builtin.checkSeries(env.ProviderConfig(), series)
}

// jujuProvider returns the capabilities in the form for juju's commands.
func jujuProvider(c provider.Capabilities) juju.Provider {
	return juju.Provider{Isolated: c.Isolated, Remote: c.Remote}
}

// inspectPlugin starts the plugin, and returns its capabilities and the checksum of its executable. It returns an error
// if the operator has given a different checksum.
func inspectPlugin(ctx context.Context, e home.Environment, wanted plugin.Wanted) (result juju.Provider, err error) {
	path, err := findPlugin(e)
	if err != nil {
		return result, err
	}

	sum, err := plugin.Sum(path)
	if err != nil {
		return result, err
	}
	if err := plugin.CheckSum(path, wanted.SHA256); err != nil {
		return result, err
	}
	// Deferred calls run in reverse order: client.Close, which ends the plugin's process, comes before this one.
	defer func() { err = errors.Join(err, agent.RemoveSockets(e.UUID)) }()

	client := plugin.NewClient(plugin.Options{
		Name:    e.Provider,
		Sockets: socketFolder(e),
		Log:     slog.New(slog.DiscardHandler), // the operator gets the returned error
		Find:    func(string) (string, error) { return path, nil },
		Wanted:  func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer client.Close()

	capabilities, err := client.Capabilities(ctx)
	result = jujuProvider(capabilities)
	result.SHA256 = sum
	return result, err
}

// findPlugin returns the path of the provider's executable, or an error that lists the existing providers.
func findPlugin(e home.Environment) (string, error) {
	folders := providerFolders(e)
	// Do not search for an invalid name, since the name is a part of a file name.
	if providerName().MatchString(e.Provider) {
		path, err := plugin.Find(e.Provider, folders)
		if err == nil {
			return path, nil
		}
		if _, isMissing := errors.AsType[*plugin.NotFoundError](err); !isMissing {
			return "", err
		}
	}

	var known []string
	for _, b := range builtinProviders() {
		known = append(known, b.name)
	}

	for _, name := range plugin.Names(folders) {
		if !isBuiltin(name) {
			known = append(known, name)
		}
	}

	return "", console.Hint(
		console.Usage(fmt.Errorf("there is no provider %q; the known providers are: %s",
			e.Provider, strings.Join(known, ", "))),
		fmt.Sprintf("any other provider must be an executable named %sNAME, in a directory of BIJOU_PLUGIN_PATH (%q), in /usr/local/lib/bijou/providers, in /usr/lib/bijou/providers, or on PATH",
			plugin.Prefix, os.Getenv("BIJOU_PLUGIN_PATH")))
}
