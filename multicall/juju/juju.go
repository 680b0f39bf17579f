// Package juju has the operator's commands, one file a command. They read and
// change state, and print; the agents do what follows.
//
// It knows no agent and no provisioner: what a command needs of them (to start
// the background process, to stop it) it asks interfaces of its own, which
// multicall implements; that and multicall/providers alone import it.
package juju

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/progress"
)

// Parts are the rest of the binary, as far as the commands need it.
type Parts struct {
	Version   string   // bijou's
	Applets   []string // links to make in the tools folder
	HookTools []string // the hook tools among them, which charms may hold as links
	Agents    Agents
	Services  Services
	Hooks     Hooks
	Providers Providers
	// OpenFleet opens what a page shows of boot servers; nil: there are none.
	OpenFleet func(ctx context.Context, s console.Streams) (*dashboard.Fleet, error)
	// Fault, unless it is nil, is called at named points, for tests.
	Fault func(point string)
}

// Agents are the processes that run machines on this host.
type Agents interface {
	// Start starts the environment's background process (machine 0, with the
	// provisioner) and does not wait for it; alive reports whether it still lives.
	Start(e home.Environment) (alive func() bool, err error)
	// Running returns the id of the process that runs the local machine of that
	// folder, 0 if none does.
	Running(dir string) (pid int, err error)
	// Process is Running, but for a process, too, that is about to run it or has just done so.
	Process(dir string) (pid int, err error)
	// Halt ends the process that runs the local machine of that folder, or is about to, and
	// returns when none does.
	Halt(ctx context.Context, dir string, grace time.Duration) error
	// Holder returns a folder of this host, as machines' claims name it.
	Holder(dir string) (state.Holder, error)
	// IsAlive reports whether a claim's holder is a live process of this host.
	IsAlive(h state.Holder) bool
	// IsStopped reports whether a live holder was stopped (SIGSTOP), so that it cannot end by itself.
	IsStopped(h state.Holder) bool
	// SweepTools removes the tools that nobody runs any more, but for those named and
	// the environment's own.
	SweepTools(e home.Environment, keep ...string) error
	// Owed returns what a unit's agent would do now, as the state is; "" if it would wait for
	// something to change. That update-status comes every few minutes does not count.
	Owed(v *state.View, unit string) (string, error)
	// RemoveFiles removes what the agents of the environment keep outside of its folder.
	RemoveFiles(e home.Environment) error
}

// Services are systemd's services of this host.
type Services interface {
	// Of returns the service that the process belongs to; "" is none.
	Of(pid int) string
	// Stop has systemd end that service, and returns when it has.
	Stop(service string) error
}

// Hooks are commands that run as hooks do, and what is left of them.
type Hooks interface {
	// Run runs a command as if it were a hook. An error says why it could not
	// be run, or nothing be written; the exit code goes with it.
	Run(ctx context.Context, s *state.State, c HookCommand) (HookOutcome, error)
	// UnitDir returns a path of a unit's folder below its machine's; it may be a link.
	UnitDir(machineDir, unit string) string
	// StorageDir returns the folder of a storage of a machine of this host, and that of the
	// operator's in which it is; empty: it is below the machine's.
	StorageDir(machineDir, environment string, s state.Storage) (folder, base string)
	// Quiesce keeps hooks of a unit of this host from beginning, and returns once none runs.
	// onWait is called if it has to wait. It returns ErrCannotQuiesce, or ctx's error.
	Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (Quiesced, error)
	// EndStrays ends processes that hooks have left running: those with the word
	// NAME=VALUE in their environment.
	EndStrays(ctx context.Context, word string) error
}

// Quiesced keeps hooks of a unit from beginning until it is closed, or this process ends.
type Quiesced interface {
	// Holds reports whether no hook can have begun so far.
	Holds() bool
	// Close lets hooks run again.
	Close() error
}

// ErrCannotQuiesce says that a unit's agent is of an older binary, which cannot be asked to run no
// hook.
var ErrCannotQuiesce = errors.New("its agent is of an older binary, which cannot keep hooks from beginning")

// Providers make machines, on this host or others.
type Providers interface {
	// Inspect asks the provider that an environment is to have what it can do.
	// If there is no such provider, the error lists those that there are.
	Inspect(ctx context.Context, e home.Environment, config map[string]string) (Provider, error)
	// CheckSettings refuses settings of the environment that an operator gives, where they are the
	// provider's, and it does not have them.
	CheckSettings(provider string, given map[string]string) error
	// Access returns how to get onto a machine that has an instance, or is machine 0.
	Access(e home.Environment, env state.Environment, m state.Machine) (Access, error)
	// FreeInstances stops what the environment's provider has made. No provisioner runs meanwhile.
	FreeInstances(ctx context.Context, e home.Environment) error
}

// Provider describes a provider to bootstrap.
type Provider struct {
	Series   string // the only one that its machines can have; "": any
	SHA256   string // of its executable; empty: it is this binary
	Isolated bool   // a machine's processes and files are its own
	Remote   bool   // machines are on other hosts
}

type grammar struct {
	Environment string `short:"e" placeholder:"NAME" help:"The environment; default: $$JUJU_ENV, then the one bootstrapped last."`
	Model       string `short:"m" placeholder:"NAME" help:"The same, by Juju 3's name for it."`
}

type commands struct {
	Bootstrap          bootstrapCmd          `cmd:"" aliases:"add-model" help:"Make an environment and start its background process."`
	Start              startCmd              `cmd:"" help:"Start the background process again, after a crash or a reboot."`
	Stop               stopCmd               `cmd:"" help:"End the background process; the state stays, and juju start goes on."`
	MigrateState       migrateStateCmd       `cmd:"" help:"Move a stopped environment's state to another store, as from one host's file to etcd."`
	Backup             backupCmd             `cmd:"" help:"Write all of an environment's state to one file, while units work."`
	Restore            restoreCmd            `cmd:"" help:"Make an environment of a backup, or put one back."`
	DestroyEnvironment destroyEnvironmentCmd `cmd:"" aliases:"destroy-model" help:"Take an environment down: services, processes, files."`
	Environments       environmentsCmd       `cmd:"" aliases:"models,list-models" help:"List the environments."`
	ShowModel          showModelCmd          `cmd:"" help:"Show what an environment is."`
	UpgradeJuju        upgradeJujuCmd        `cmd:"" help:"Let the environment's agents go over to this binary."`
	Switch             switchCmd             `cmd:"" help:"Choose the environment that commands use without -e."`
	Version            versionCmd            `cmd:"" help:"Print the version of Juju that charms and programs see."`

	Deploy          deployCmd          `cmd:"" help:"Deploy a charm as a service, or a bundle of them."`
	DiffBundle      diffBundleCmd      `cmd:"" help:"Show how a bundle and the environment differ."`
	ExportBundle    exportBundleCmd    `cmd:"" help:"Write the environment as a bundle."`
	AddUnit         addUnitCmd         `cmd:"" help:"Add units to a service."`
	AddRelation     addRelationCmd     `cmd:"" aliases:"relate,integrate" help:"Relate two services."`
	DestroyRelation destroyRelationCmd `cmd:"" aliases:"remove-relation" help:"End a relation."`
	UpgradeCharm    upgradeCharmCmd    `cmd:"" aliases:"refresh" help:"Let a service go over to a newer charm."`
	RemoveUnit      removeUnitCmd      `cmd:"" aliases:"destroy-unit" help:"Remove units."`
	DestroyService  destroyServiceCmd  `cmd:"" aliases:"remove-service,remove-application" help:"Remove services with their units and relations."`
	AddMachine      addMachineCmd      `cmd:"" help:"Add machines without units."`
	DestroyMachine  destroyMachineCmd  `cmd:"" aliases:"remove-machine" help:"Remove machines."`

	Expose         exposeCmd         `cmd:"" help:"Mark a service as to be reached from outside."`
	Unexpose       unexposeCmd       `cmd:"" help:"Take that mark away."`
	Set            setCmd            `cmd:"" help:"Set configuration options of a service."`
	Unset          unsetCmd          `cmd:"" help:"Put configuration options of a service back to their defaults."`
	Get            configCmd         `cmd:"" aliases:"config" help:"Show the configuration of a service; config also changes it, as set and unset do."`
	ModelConfig    modelConfigCmd    `cmd:"" help:"Show, set or put back configuration values of the environment."`
	SetEnvironment setEnvironmentCmd `cmd:"" help:"Set configuration values of the environment."`
	GetEnvironment getEnvironmentCmd `cmd:"" help:"Show the configuration of the environment."`
	SetConstraints setConstraintsCmd `cmd:"" aliases:"set-model-constraints" help:"Say what machines of units to come have to satisfy."`
	GetConstraints getConstraintsCmd `cmd:"" aliases:"model-constraints" help:"Show what they have to satisfy."`

	AddSecret       addSecretCmd       `cmd:"" help:"Add a secret of the operators'."`
	UpdateSecret    updateSecretCmd    `cmd:"" help:"Change an operators' secret."`
	GrantSecret     grantSecretCmd     `cmd:"" help:"Let services read an operators' secret."`
	RevokeSecret    revokeSecretCmd    `cmd:"" help:"Take that right away."`
	RemoveSecret    removeSecretCmd    `cmd:"" help:"Remove operators' secrets."`
	SetCredential   setCredentialCmd   `cmd:"" help:"Give the credential of a cloud to services that are trusted."`
	Trust           trustCmd           `cmd:"" help:"Let a service have the cloud's credential."`
	RotateSecretKey rotateSecretKeyCmd `cmd:"" help:"Seal all secrets with a new key."`
	Secrets         secretsCmd         `cmd:"" aliases:"list-secrets" help:"List the secrets, without what they hold."`
	ShowSecret      showSecretCmd      `cmd:"" help:"Show a secret."`

	Run              runCmd              `cmd:"" help:"Run an action of a charm on units and wait for it; behind two dashes, a command."`
	Exec             execCmd             `cmd:"" help:"Run a command on units, by their agents."`
	Actions          actionsCmd          `cmd:"" aliases:"list-actions" help:"List what actions a service's charm has."`
	RunAction        runActionCmd        `cmd:"" help:"Run an action of a charm on units."`
	ShowActionOutput showActionOutputCmd `cmd:"" aliases:"show-action,show-operation,show-task" help:"Show what came of an action."`
	ShowActionStatus showActionStatusCmd `cmd:"" aliases:"operations" help:"List actions and commands, and how far they are."`
	CancelAction     cancelActionCmd     `cmd:"" aliases:"cancel-task" help:"End actions that wait or run."`
	Resources        resourcesCmd        `cmd:"" aliases:"list-resources" help:"List the resources of a service's charm."`
	AttachResource   attachResourceCmd   `cmd:"" help:"Give a service files for resources of its charm."`

	Storage       storageCmd       `cmd:"" aliases:"list-storage" help:"List the storage of units, and what no unit has any more."`
	ShowStorage   showStorageCmd   `cmd:"" help:"Show storage."`
	AddStorage    addStorageCmd    `cmd:"" help:"Give a unit more of a storage of its charm."`
	AttachStorage attachStorageCmd `cmd:"" help:"Give a unit storage that no unit has."`
	DetachStorage detachStorageCmd `cmd:"" help:"Take storage from the unit that has it; what it holds stays."`
	RemoveStorage removeStorageCmd `cmd:"" help:"Remove storage with all that it holds."`

	Status          statusCmd          `cmd:"" aliases:"ps,ls" help:"Show machines, services, units and relations."`
	ShowUnit        showUnitCmd        `cmd:"" aliases:"describe" help:"Show units, and what they and others have said in their relations."`
	ShowApplication showApplicationCmd `cmd:"" aliases:"show-service" help:"Show services, with their units."`
	ShowStatusLog   showStatusLogCmd   `cmd:"" help:"Show how a unit's status was lately."`
	Wait            waitCmd            `cmd:"" help:"Wait until units have settled, are active, or are gone."`
	Dashboard       dashboardCmd       `cmd:"" help:"Show the environment on a page in a browser, live."`
	Machines        machinesCmd        `cmd:"" aliases:"list-machines" help:"List the machines."`
	ShowMachine     showMachineCmd     `cmd:"" help:"Show machines, with their units."`
	Do              doCmd              `cmd:"" help:"Run a command here as if it were a unit's hook; or open a shell as a unit."`
	SSH             sshCmd             `cmd:"" name:"ssh" help:"Open a shell on a unit's machine, or run a command there."`
	SCP             scpCmd             `cmd:"" name:"scp" help:"Copy files to a machine, or from there."`
	DebugHooks      debugHooksCmd      `cmd:"" help:"Run a unit's hooks by hand, in a tmux session."`
	HookHistory     hookHistoryCmd     `cmd:"" help:"Show the last hooks of a unit, and what they wrote."`
	DebugLog        debugLogCmd        `cmd:"" aliases:"logs" help:"Show what the units' hooks and agents say."`
	Interrupt       interruptCmd       `cmd:"" help:"End the hook, action or command that a unit runs."`
	Resolved        resolvedCmd        `cmd:"" help:"Let a unit, relation or machine in error go on."`

	RetryProvisioning retryProvisioningCmd `cmd:"" help:"Let machines that could not be started be tried again."`
}

// Main runs one juju command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	return console.Report(s.Err, run(ctx, s, parts, console.OrHelp(args)))
}

func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	if err := refuseMissing(args); err != nil {
		return err
	}
	args, tail := cutCommand(args)
	var g grammar
	names := func(w console.Wanted) []string { return completeNames(ctx, parts, w) }
	parsed, err := console.Parse(s, console.Command{Name: "juju", Grammar: &g, Commands: &commands{}, Help: helpFiles, Inserts: helpInserts(), Names: names}, args)
	if err != nil {
		return err
	}
	h, err := home.Find()
	if err != nil {
		return err
	}
	bar := console.NewProgress(s.Err, time.Now)
	defer bar.End()
	ctx = progress.With(ctx, func(s progress.Steps) { bar.At(s.What, s.Done, s.Total) })
	o := &operator{ctx: ctx, streams: s, home: h, name: environmentName(cmp.Or(g.Environment, g.Model)), parts: parts, args: args, command: tail}
	err = parsed.Run(o)
	if c, may := parsed.Selected().Target.Interface().(awaiting); may && err == nil {
		err = o.awaitAffected(c.flags())
	}
	return withHint(err)
}

// cutCommand takes the command of `juju run ... -- COMMAND` off the arguments, so that no
// word of it is taken for a flag of juju's.
func cutCommand(args []string) (own, command []string) {
	i := slices.Index(args, "--")
	if i < 0 || args[0] == console.CompleteOption {
		return args, nil
	}
	words := args[:i]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		n := 1
		if slices.Contains([]string{"-e", "--environment", "-m", "--model"}, words[0]) {
			n = min(2, len(words))
		}
		words = words[n:]
	}
	if len(words) == 0 || words[0] != "run" && words[0] != "exec" {
		return args, nil
	}
	return args[:i], args[i+1:]
}

//go:embed help
var helpFiles embed.FS

func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}

// missing are commands of Juju's or another tool's, and what there is instead.
type missing struct{ commands, what, instead string }

func missingCommands() []missing {
	return []missing{
		{"offer offers find-offers show-offer remove-offer consume suspend-relation resume-relation remove-saas", "offers to other models", "deploy both services in one environment: juju integrate A B"},
		{"spaces add-space show-space remove-space rename-space move-to-space reload-spaces subnets bind", "spaces", "all machines reach one another"},
		{"clouds add-cloud show-cloud update-cloud remove-cloud regions add-k8s remove-k8s", "clouds", "juju bootstrap --provider NAME says who makes machines"},
		{"controllers show-controller destroy-controller kill-controller enable-ha register unregister login logout whoami users add-user", "controllers and users", "an environment is whoever's its folder is: juju models"},
		{"add-ssh-key remove-ssh-key ssh-keys import-ssh-key", "keys of operators", "whoever may read the environment's folder gets in: juju ssh UNIT"},
		{"find info download", "charm store", "give a charm's folder or archive: juju deploy ./mysql.charm"},
		{"storage-pools create-storage-pool update-storage-pool remove-storage-pool", "storage pools of operators'", "juju deploy --storage NAME=POOL, of the pools rootfs, tmpfs and host:/FOLDER"},
		{"wait-for", "queries to wait for", "juju wait [SERVICE...] --for idle, active or gone"},
		{"create-backup", "backups of controllers", "juju backup FILE writes an environment's state to a file"},
		{"scale-application", "number that a service is to have", "juju add-unit SERVICE -n N, or juju remove-unit SERVICE --num-units N"},
		{"up", "such command", "juju bootstrap makes an environment, juju deploy CHARM a service"},
	}
}

// refuseMissing tells whoever knows Juju, or another tool, what there is instead.
func refuseMissing(args []string) error {
	for _, m := range missingCommands() {
		if len(args) > 0 && slices.Contains(strings.Fields(m.commands), args[0]) {
			return console.Hint(console.Usage(fmt.Errorf("there is no command %q: bijou has no %s", args[0], m.what)), m.instead)
		}
	}
	return nil
}
