// Package do implements `juju do`. It runs any command as if it were a unit's hook, with all hook tools, and
// commits the tools' changes if the command succeeds.
//
// It needs only the environment's state, and works with or without a running agent of the unit. The command
// does not go through the unit's queue, and does not count as one of the unit's hooks.
package do

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"sync"
	"syscall"

	"bijou/agent/hookctx"
	"bijou/agent/unitlog"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/server"
	"bijou/hookenv/tools"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/secret"
)

// Options configure [Run].
type Options struct {
	State    *state.State
	Unit     string          // runs the command as a hook of this unit, if set
	Relation string          // runs the command as a hook of this relation, if set: an id in any form
	Dialect  hookapi.Dialect // the dialect of the hook tools; by default the charm's, or classic without a unit

	// Command is the command with its arguments. If Unit is empty and Command is only the name of an existing
	// unit, Run opens Shell as that unit. It also opens Shell if Command is nil.
	Command []string
	Shell   string // the operator's shell
	Streams Streams
	Environ []string // variables that the command inherits, NAME=VALUE

	Links Links
	// Folder creates a directory for the files that Run needs, and returns its path. Only the owner can enter
	// the directory. The path must be short, since Run creates a unix socket in the directory.
	Folder func(uuid string) (string, error)
	// MachineDir returns a machine's directory on this host. It is nil if the host has none.
	MachineDir func(id string) string
	SecretKeys secret.Keeper
}

// Links are the symlinks that come first on a command's PATH: their names, and the binary to which they
// point.
type Links struct {
	Names  []string
	Binary string
}

// Outcome is the result of a command that has ended.
type Outcome struct {
	Exit    int // the command's exit code, or 128+N if signal N killed it
	Changed int // how many changed settings and ports were committed
}

// The exit codes of commands that could not be started. They are the same as in shells.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// Run runs the command to its end. If the command exits with 0, Run commits the changes of the command's hook
// tools in one transaction. Otherwise it drops them. A new status or workload version takes effect at once. Run
// returns an error if the command cannot be run, or if the commit fails. Outcome.Exit is then not 0.
//
// A ctx that is done ends only Run's reads before the command, not the command or the commit. Run forwards signals
// to the command, and waits until the command ends. A SIGINT or SIGTERM that arrives later ends the commit.
func Run(ctx context.Context, o Options) (Outcome, error) {
	r := &run{Options: o, operator: operatorName()}
	if err := r.gatherFacts(ctx); err != nil {
		return Outcome{Exit: 1}, err
	}
	base, err := r.Folder(r.facts.env.UUID)
	if err != nil {
		return Outcome{Exit: 1}, err
	}

	dir, err := newWorkDir(base, r.Links)
	if err != nil {
		return Outcome{Exit: 1}, err
	}
	defer dir.remove()

	r.logs = &logWriter{
		state:  r.State,
		stderr: r.Streams.Err,
		sender: unitlog.NewSender(r.State, slog.Default()),
		logs:   map[string]*unitlog.Log{},
	}
	defer r.logs.close()

	return r.serveCommand(ctx, dir)
}

// run is one call of Run.
type run struct {
	Options
	facts    hookFacts
	operator string // the operator's name in logs, "root@host"
	logs     *logWriter
}

// serveCommand runs the command with a socket that answers its hook tools. If the command exits with 0,
// serveCommand commits the changes of these tools. Otherwise it drops them.
func (r *run) serveCommand(ctx context.Context, d workDir) (Outcome, error) {
	s, err := server.Listen(d.socketPath())
	if err != nil {
		return Outcome{Exit: 1}, err
	}
	defer s.Close()

	hook := hookctx.New(r.contextOptions())
	client := server.NewClientID()
	s.Register(client, auditedHook{hook, r})

	exit, err := r.execute(d, client)
	s.Unregister(client)
	if err != nil || exit != 0 {
		hook.Close()
		if err == nil { // otherwise no shell has run
			r.warnShellFailed(exit)
		}
		return Outcome{Exit: exit}, err
	}

	// A signal that the command survived may have ended ctx. It must not end the commit.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := r.commit(ctx, hook)
	if err != nil {
		return Outcome{Exit: 1}, fmt.Errorf("cannot write the command's changes: %w", err)
	}

	return Outcome{Changed: n}, nil
}

// warnShellFailed warns the operator that no changes were written, if the command is a shell and its exit
// code is not 0. Operators easily overlook this exit code, since it can be that of the shell's last command
// or of ctrl-C.
func (r *run) warnShellFailed(exit int) {
	if r.Command == nil && exit != 0 {
		fmt.Fprintf(r.Streams.Err, "the shell ended with exit code %d, so its changes to settings are not written\n", exit)
	}
}

// commit commits the changes of the command's tools in one transaction. It logs each changed port and each changed
// setting in a relation in the log of the unit or service that it concerns, and returns the number of both.
func (r *run) commit(ctx context.Context, hook *hookctx.Context) (changed int, err error) {
	var changes []hookctx.Change
	err = r.State.Update(ctx, func(tx *state.Tx) (err error) {
		changes, err = hook.AddTo(ctx, tx)
		return err
	})
	if errors.Is(err, state.ErrTooLarge) {
		return 0, fmt.Errorf("the command changed settings in %d places at once, but a transaction can hold only about %d: "+
			"change fewer at a time", hook.CountChangedNodes(), state.MaxNodesPerUpdate)
	}
	if err != nil {
		return 0, err
	}

	for _, c := range changes {
		source := c.Node.Unit + c.Node.Service // one of them is empty
		r.logs.write(source, "INFO", fmt.Sprintf("%s in relation-%d, by %s", c, c.Node.Relation, r.operator))
	}

	ports := hook.PortChanges()
	for _, c := range ports {
		r.logs.write(c.Unit, "INFO", fmt.Sprintf("%s, by %s", c, r.operator))
	}
	return len(changes) + len(ports), nil
}

// parseRelation returns the id of the relation in the options, or [hookapi.NoRelation] if they contain none. It
// returns an error if r.Relation is not a relation id.
func (r *run) parseRelation() (int, error) {
	if r.Relation == "" {
		return hookapi.NoRelation, nil
	}

	id, ok := tools.RelationID(r.Relation)
	if !ok {
		return 0, charm.Invalidf("%q is not a relation id: want one like relation-1, 1 or db:1", r.Relation)
	}

	return id, nil
}

// auditedHook is a hook's context that logs each new status and version of the workload, with the operator's name.
// They take effect at once, so [run.commit] does not log them.
type auditedHook struct {
	*hookctx.Context
	run *run
}

// SetStatus sets the status, and logs the new status with the operator's name.
func (h auditedHook) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	if err := h.Context.SetStatus(ctx, ofService, s); err != nil {
		return err
	}

	object := "status"
	if ofService {
		object = "status of the application"
	}
	h.Log("INFO", fmt.Sprintf("%s set: %s %q, by %s", object, s.Status, s.Message, h.run.operator))
	return nil
}

// SetVersion records the version of the unit's workload, and logs the version with the operator's name.
func (h auditedHook) SetVersion(ctx context.Context, version string) error {
	if err := h.Context.SetVersion(ctx, version); err != nil {
		return err
	}

	h.Log("INFO", fmt.Sprintf("workload version set: %q, by %s", version, h.run.operator))
	return nil
}

// operatorName returns the operator's name for the log, as USER@HOST. It replaces an unknown user by the user
// id, and leaves out an unknown host.
func operatorName() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}

	return name + "@" + host
}

// logWriter writes lines to the environment's log of a unit or service. It does not write the log file on the
// unit's machine, since only the unit's agent writes that file.
type logWriter struct {
	state  *state.State
	stderr io.Writer // gets lines that do not concern a unit or service

	mu     sync.Mutex
	sender *unitlog.Sender
	logs   map[string]*unitlog.Log
}

// write writes a message to the log of source, a unit or service. If source is empty, it writes to stderr.
func (w *logWriter) write(source, level, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if source == "" {
		fmt.Fprintf(w.stderr, "%s %s\n", level, message)
		return
	}

	log := w.logs[source]
	if log == nil {
		log = w.sender.Open(source, "") // without a file
		w.logs[source] = log
	}
	log.Write(level, hookName, message)
}

// close sends the pending lines of all logs. No other method can be called afterwards.
func (w *logWriter) close() {
	var sending sync.WaitGroup
	for _, log := range w.logs {
		sending.Go(log.Close)
	}
	sending.Wait()
	w.sender.Close()
}
