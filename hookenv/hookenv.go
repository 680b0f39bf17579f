// Package hookenv is the hook tools as a hook sees them: their grammar and their
// output. A tool runs inside the agent, on behalf of the thin client that the
// hook called: Run parses its arguments, asks hookapi, and formats the answer.
//
// It is no socket (hookenv/server) and no process (hookenv/client), and knows
// nothing of state or agents: all it learns comes through hookapi. One file
// holds one tool, named after it. agent, hookenv/server and multicall import it.
package hookenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/hookenv/client"
	"bijou/hookenv/hookapi"
)

// Call is one call of a tool, as its caller made it.
type Call struct {
	Argv  []string // the tool's name or path first
	Stdin string   // one of client.StdinNone, StdinFIFO, StdinFile, StdinTerminal
	Files Files
	Now   func() time.Time
}

// Files reads files as the caller would.
type Files interface {
	// Read returns a file's content, or stdin's to its end if the path is "-".
	// Its error is worded for people and goes to them unchanged.
	Read(ctx context.Context, path string) ([]byte, error)
}

// Result holds what the caller prints and exits with.
type Result struct {
	Exit           int
	Stdout, Stderr []byte
	Write          string // a path that Stdout goes to instead; "" for stdout
}

// Run runs the tool for a hook. It never fails: whatever goes wrong is in the result, worded for
// the caller.
func (t Tool) Run(ctx context.Context, h hookapi.Hook, call Call) Result {
	inv := &invocation{Call: call, hook: h, facts: h.Facts(), tool: t}
	return inv.makeResult(inv.run(ctx))
}

// RunWithoutHook runs the tool for a caller that has no hook around it, argv[0] included: it answers
// --help, and juju-log, which works everywhere. done is false for every other call; those go through
// client.Run.
func (t Tool) RunWithoutHook(argv []string) (r Result, done bool) {
	flags, run, err := t.parse(argv[1:])
	if errors.Is(err, errHelp) {
		return Result{Stdout: []byte(t.Help())}, true
	}
	if !t.worksWithoutHook || flags.clientID != "" || os.Getenv("JUJU_CLIENT_ID") != "" {
		return Result{}, false
	}
	inv := &invocation{
		Call: Call{Argv: argv, Stdin: client.StdinNone},
		hook: nil, tool: t, args: flags.args,
	}
	if err == nil {
		err = run(context.Background(), inv)
	}
	return inv.makeResult(err), true
}

// invocation is one tool at work.
type invocation struct {
	Call
	hook  hookapi.Hook
	facts hookapi.Facts
	tool  Tool
	args  []string // what is left of argv without options

	stdout, stderr bytes.Buffer
	write          string
}

func (inv *invocation) run(ctx context.Context) error {
	flags, run, err := inv.tool.parse(inv.Argv[1:])
	if errors.Is(err, errHelp) {
		inv.stdout.WriteString(inv.tool.Help())
		return nil
	}
	if err != nil {
		return err
	}
	inv.args = flags.args
	return run(ctx, inv)
}

func (inv *invocation) makeResult(err error) Result {
	r := Result{Stdout: inv.stdout.Bytes(), Stderr: inv.stderr.Bytes(), Write: inv.write}
	if err == nil {
		return r
	}
	err = inv.rewordError(err)
	r.Exit = exitCode(err)
	r.Stderr = append(r.Stderr, "ERROR "+err.Error()+"\n"...)
	return r
}

// Charms know the errors that hookapi promises in these words, whatever an implementation has
// wrapped around them.
func (inv *invocation) rewordError(err error) error {
	switch {
	case errors.Is(err, hookapi.ErrGone):
		return hookapi.ErrGone
	case !errors.Is(err, hookapi.ErrRelationNotFound):
		return err
	case inv.isModern():
		return usagef("relation not found")
	}
	return usagef("Relation not found")
}

func (inv *invocation) isModern() bool { return inv.facts.Dialect == hookapi.Modern }

// Scripts that read names by lines may leave the line's end on one, which the tools of classic
// charms never minded.
func (inv *invocation) trimName(given string) string {
	if inv.isModern() {
		return given
	}
	return strings.TrimRight(given, " \t\r\n")
}

func (inv *invocation) limitArgs(n int) error {
	if len(inv.args) > n {
		return usagef("unrecognized args: %q", inv.args[n:])
	}
	return nil
}

func (inv *invocation) requireUnitName() error {
	if inv.facts.Unit == "" {
		return usagef("no unit specified: name it as the last argument, or run juju do with --unit")
	}
	return nil
}

// There is no local unit under juju do without --unit.
func (inv *invocation) requireLocalUnit() error {
	if inv.facts.Unit == "" {
		return usagef("no unit specified: run juju do with --unit")
	}
	return nil
}

// checkUnitCall is for tools that mean the local unit and take at most maxArgs arguments.
func (inv *invocation) checkUnitCall(maxArgs int) error {
	if err := inv.limitArgs(maxArgs); err != nil {
		return err
	}
	return inv.requireLocalUnit()
}

// Without a hook, messages go to the caller's stderr.
func (inv *invocation) writeLog(level, message string) {
	if inv.hook == nil {
		fmt.Fprintf(&inv.stderr, "%s %s\n", level, message)
		return
	}
	inv.hook.Log(level, message)
}

// deprecateFormat prints what Juju prints about --format where nothing is printed, its missing
// newline included: charm libraries compare it.
func (inv *invocation) deprecateFormat(format string) {
	if format != "" {
		fmt.Fprintf(&inv.stderr, "--format flag deprecated for command %q", inv.tool.Name)
	}
}
