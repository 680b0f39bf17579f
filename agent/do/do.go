// Package do is `juju do`: it runs any command as if it were a unit's hook, with
// all hook tools, and commits what they wrote if the command succeeds. It is an
// invoker without an agent around it: it needs nothing but the environment's
// state, and works beside the unit's own agent as well as without it.
//
// It queues nothing, and no unit counts it as one of its hooks. Only multicall imports it.
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

// Options say what is run, as what, and where.
type Options struct {
	State    *state.State
	Unit     string          // as which unit; empty: as none
	Relation string          // as a hook of which relation, an id in any form; empty: of none
	Dialect  hookapi.Dialect // empty: that of the unit's charm, else classic

	// Command and its arguments. A single one that names an existing unit means
	// Shell, as that unit.
	Command []string
	Shell   string // the operator's shell
	Streams Streams
	Environ []string // that the command inherits, NAME=VALUE

	Links Links
	// Folder makes the folder for what is needed while commands run, owner-only
	// and short: a unix socket lies in it.
	Folder func(uuid string) (string, error)
	// MachineDir is a machine's folder on this host; nil: it has none.
	MachineDir func(id string) string
	SecretKeys secret.Keeper
}

// Links stand first on a command's PATH: names, and the binary that all of them link to.
type Links struct {
	Names  []string
	Binary string
}

// Outcome is how the command has ended.
type Outcome struct {
	Exit    int // of the command; 128+N if signal N killed it
	Changed int // settings and ports that were changed and are committed
}

// The exit codes of commands that did not run, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// Run runs the command to its end. If the command exits with 0, Run commits all that its tools wrote in one
// transaction. It returns an error if the command cannot be run, or if the commit fails; Outcome.Exit is
// not 0 then.
//
// ctx ends the work before the command and after it. The command itself gets this process's signals, and
// takes its own time to end.
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

type run struct {
	Options
	facts    hookFacts
	operator string // who runs it, "root@host"
	logs     *logWriter
}

// serveCommand runs the command with a socket that answers its hook tools, and commits what they wrote if
// it exits with 0.
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
		r.warnShellFailed(exit)
		return Outcome{Exit: exit}, err
	}

	// A signal that the command has outlived is not to end what follows.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := r.commit(ctx, hook)
	if err != nil {
		return Outcome{Exit: 1}, fmt.Errorf("cannot write the command's changes: %w", err)
	}

	return Outcome{Changed: n}, nil
}

// warnShellFailed warns an operator who leaves a shell with an exit code other than 0 that nothing is
// written. Operators overlook that exit code, such as the one of the last command or of ctrl-C.
func (r *run) warnShellFailed(exit int) {
	if r.Command == nil && exit != 0 {
		fmt.Fprintf(r.Streams.Err, "the shell ended with exit code %d: its settings are not written\n", exit)
	}
}

// commit writes what the command's tools have set, in one transaction, and logs each change in the logs of
// the units that it concerns. changed counts the changes.
func (r *run) commit(ctx context.Context, hook *hookctx.Context) (changed int, err error) {
	var changes []hookctx.Change
	err = r.State.Update(ctx, func(tx *state.Tx) (err error) {
		changes, err = hook.AddTo(ctx, tx)
		return err
	})
	if errors.Is(err, state.ErrTooLarge) {
		return 0, fmt.Errorf("it changed settings in %d places at once, more than one transaction can hold: "+
			"about %d are possible; change fewer at a time", hook.CountChangedNodes(), state.MaxNodesPerUpdate)
	}
	if err != nil {
		return 0, err
	}

	for _, c := range changes {
		r.logs.write(c.Node.Unit+c.Node.Service, "INFO",
			fmt.Sprintf("%s in relation-%d, by %s", c, c.Node.Relation, r.operator))
	}

	ports := hook.PortChanges()
	for _, c := range ports {
		r.logs.write(c.Unit, "INFO", fmt.Sprintf("%s, by %s", c, r.operator))
	}
	return len(changes) + len(ports), nil
}

// parseRelation returns the number of the relation that the command line names, or NoRelation.
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

// auditedHook logs who makes the writes of a hook that take effect at once.
type auditedHook struct {
	*hookctx.Context
	run *run
}

// SetStatus sets the status, and logs it.
func (h auditedHook) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	if err := h.Context.SetStatus(ctx, ofService, s); err != nil {
		return err
	}

	what := "status"
	if ofService {
		what = "status of the application"
	}
	h.Log("INFO", fmt.Sprintf("%s set: %s %q, by %s", what, s.Status, s.Message, h.run.operator))
	return nil
}

// operatorName returns USER@HOST, under which the log names the operator.
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

// logWriter writes lines into the environment's log of the unit (or service) that they are
// about. Only a unit's own agent writes the file on its machine.
type logWriter struct {
	state  *state.State
	stderr io.Writer // gets what is about no unit

	mu     sync.Mutex
	sender *unitlog.Sender
	logs   map[string]*unitlog.Log
}

// write writes a message to the log of a unit or, without one, to stderr.
func (w *logWriter) write(source, level, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if source == "" {
		fmt.Fprintf(w.stderr, "%s %s\n", level, message)
		return
	}

	log := w.logs[source]
	if log == nil {
		log = w.sender.Open(source, "")
		w.logs[source] = log
	}
	log.Write(level, hookName, message)
}

func (w *logWriter) close() {
	var sending sync.WaitGroup
	for _, log := range w.logs {
		sending.Go(log.Close)
	}
	sending.Wait()
	w.sender.Close()
}
