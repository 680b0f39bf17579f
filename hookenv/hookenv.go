// Package hookenv is the engine of hook tools: the grammar of their options, their
// help, their output in each format, their errors and exit codes. A tool runs inside
// the agent, on behalf of the thin client that the hook called: its arguments are
// parsed, hookapi is asked, and the answer is formatted.
//
// It knows no tool: those stand above, in hookenv/tools. It is no socket (hookenv/server) and no
// process (hookenv/client), and knows nothing of state or agents: all it learns comes through
// hookapi. agent, hookenv/tools, hookenv/server and multicall import it.
package hookenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/hookenv/client/wire"
	"bijou/hookenv/hookapi"
)

// Call is one call of a tool, as its caller made it.
type Call struct {
	Argv  []string // the tool's name or path first
	Stdin string   // one of wire.StdinNone, StdinFIFO, StdinFile, StdinTerminal
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
	OutputPath     string // a path that Stdout goes to instead; "" for stdout
}

// Run runs the tool for a hook. It never fails: the result holds any error, worded for the caller.
func (t Tool) Run(ctx context.Context, h hookapi.Hook, call Call) Result {
	inv := &Invocation{Call: call, Hook: h, Facts: h.Facts(), Tool: t}
	return inv.makeResult(inv.run(ctx))
}

// RunWithoutHook runs the tool for a caller that no hook surrounds; argv includes argv[0]. It answers
// --help, and tools that work without a hook (juju-log). done is false for all other calls, which
// client.Run sends to an agent.
func (t Tool) RunWithoutHook(argv []string) (r Result, done bool) {
	flags, run, err := t.parse(argv[1:])
	if errors.Is(err, errHelp) {
		return Result{Stdout: []byte(t.Help())}, true
	}
	if !t.WorksWithoutHook || flags.clientID != "" || os.Getenv("JUJU_CLIENT_ID") != "" {
		return Result{}, false
	}

	inv := &Invocation{
		Call: Call{Argv: argv, Stdin: wire.StdinNone},
		Tool: t,
		Args: flags.args,
	}

	if err == nil {
		err = run(context.Background(), inv)
	}
	return inv.makeResult(err), true
}

// Invocation is one call of a tool: its arguments, the hook that answers its questions, and its output. One
// goroutine uses it.
type Invocation struct {
	Call
	Hook  hookapi.Hook
	Facts hookapi.Facts
	Tool  Tool
	Args  []string // what is left of argv without options

	Format string // the output format that was asked for, or the tool's own; empty: the value's

	Stdout, stderr bytes.Buffer
	write          string
}

// run parses the arguments, and runs the tool or prints its help.
func (inv *Invocation) run(ctx context.Context) error {
	flags, run, err := inv.Tool.parse(inv.Argv[1:])
	if errors.Is(err, errHelp) {
		inv.Stdout.WriteString(inv.Tool.Help())
		return nil
	}
	if err != nil {
		return err
	}

	inv.Args = flags.args
	inv.Format = flags.Format
	return run(ctx, inv)
}

// makeResult returns the output and exit code of a tool that ended with this error.
func (inv *Invocation) makeResult(err error) Result {
	r := Result{Stdout: inv.Stdout.Bytes(), Stderr: inv.stderr.Bytes(), OutputPath: inv.write}
	if err == nil {
		return r
	}

	err = inv.rewordError(err)
	r.Exit = exitCode(err)
	r.Stderr = append(r.Stderr, "ERROR "+err.Error()+"\n"...)
	return r
}

// rewordError returns hookapi's errors in the words that charms know from Juju, without the context that an
// implementation wrapped around them. It returns all other errors unchanged.
func (inv *Invocation) rewordError(err error) error {
	switch {
	case errors.Is(err, hookapi.ErrGone):
		return hookapi.ErrGone
	case !errors.Is(err, hookapi.ErrRelationNotFound):
		return err
	case inv.IsModern():
		return UsageErrorf("relation not found")
	}

	return UsageErrorf("Relation not found")
}

// IsModern reports whether the charm speaks the dialect of today's Juju.
func (inv *Invocation) IsModern() bool { return inv.Facts.Dialect == hookapi.Modern }

// TrimName returns a name without white space at its end, for classic charms: scripts that read
// names by lines may leave the line's end on one, which their tools never minded.
func (inv *Invocation) TrimName(given string) string {
	if inv.IsModern() {
		return given
	}
	return strings.TrimRight(given, " \t\r\n")
}

// Arg returns the i-th argument beside options; empty if there are fewer.
func (inv *Invocation) Arg(i int) string {
	if i < len(inv.Args) {
		return inv.Args[i]
	}
	return ""
}

// LimitArgs returns a usage error if there are more than n arguments beside options.
func (inv *Invocation) LimitArgs(n int) error {
	if len(inv.Args) > n {
		return UsageErrorf("unrecognized args: %q", inv.Args[n:])
	}
	return nil
}

// RequireUnitArgument returns a usage error if no argument can be left out for the local unit, since
// there is none.
func (inv *Invocation) RequireUnitArgument() error {
	if inv.Facts.Unit == "" {
		return UsageErrorf("no unit specified: name it as the last argument, or run juju do with --unit")
	}
	return nil
}

// RequireLocalUnit returns a usage error if there is no local unit: under juju do without --unit.
func (inv *Invocation) RequireLocalUnit() error {
	if inv.Facts.Unit == "" {
		return UsageErrorf("no unit specified: run juju do with --unit")
	}
	return nil
}

// CheckUnitCall returns a usage error unless there are a local unit and at most maxArgs arguments.
func (inv *Invocation) CheckUnitCall(maxArgs int) error {
	if err := inv.LimitArgs(maxArgs); err != nil {
		return err
	}
	return inv.RequireLocalUnit()
}

// WriteLog logs a message for the hook; without a hook it goes to the caller's stderr.
func (inv *Invocation) WriteLog(level, message string) {
	if inv.Hook == nil {
		fmt.Fprintf(&inv.stderr, "%s %s\n", level, message)
		return
	}
	inv.Hook.Log(level, message)
}

// DeprecateFormat prints to stderr that this tool ignores --format, in Juju's words and without a newline
// as in Juju: charm libraries compare that text.
func (inv *Invocation) DeprecateFormat(format string) {
	if format != "" {
		fmt.Fprintf(&inv.stderr, "--format flag deprecated for command %q", inv.Tool.Name)
	}
}
