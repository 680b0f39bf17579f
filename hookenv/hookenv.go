// Package hookenv is the engine of hook tools: the grammar of their options, their help, their output in each
// format, their errors and their exit codes. A tool runs in the agent, on behalf of the thin client that the
// hook has called. It parses its arguments, calls hookapi, and formats the result.
//
// The package does not define any tools; hookenv/tools does. It does not serve the socket (hookenv/server),
// and it is not the client (hookenv/client). It accesses state and agents only through hookapi.
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

// Call is one call of a tool.
type Call struct {
	Argv  []string // the tool's name or path, and its arguments
	Stdin string   // the kind of the caller's stdin: wire.StdinNone, StdinFIFO, StdinFile or StdinTerminal
	Files Files
	Now   func() time.Time
}

// Files reads files with the caller's permissions and working directory.
type Files interface {
	// Read returns the content of a file, or all of stdin if the path is "-". Its error is shown to the caller
	// unchanged.
	Read(ctx context.Context, path string) ([]byte, error)
}

// Result is the output and the exit code of a call.
type Result struct {
	Exit           int
	Stdout, Stderr []byte
	OutputPath     string // the file that Stdout is written to, or empty for stdout
}

// Run runs the tool for a hook. The result contains any error, as the caller sees it.
func (t Tool) Run(ctx context.Context, h hookapi.Hook, call Call) Result {
	inv := &Invocation{Call: call, Hook: h, Facts: h.Facts(), Tool: t}
	return inv.makeResult(inv.run(ctx))
}

// RunWithoutHook runs the tool for a caller that is not in a hook. argv includes argv[0]. It handles calls for help,
// unless there is an error before the help option. It also handles tools that work without a hook, such as juju-log,
// unless the call is for a hook. done is false for all other calls, which must go to an agent.
func (t Tool) RunWithoutHook(argv []string) (r Result, done bool) {
	flags, runner, err := t.parse(argv[1:])
	if errors.Is(err, errHelp) {
		return Result{Stdout: []byte(t.Help())}, true
	}
	// If the call is for a hook, the agent parses it again and reports err.
	isForHook := flags.clientID != "" || os.Getenv("JUJU_CLIENT_ID") != ""
	if isForHook || !t.WorksWithoutHook {
		return Result{}, false
	}

	inv := &Invocation{
		Call: Call{Argv: argv, Stdin: wire.StdinNone},
		Tool: t,
		Args: flags.args,
	}

	if err == nil {
		err = runner(context.Background(), inv)
	}
	return inv.makeResult(err), true
}

// Invocation is one call of a tool: its arguments, the hook that provides its data, and its output. Only one
// goroutine may use it.
type Invocation struct {
	Call
	Hook  hookapi.Hook
	Facts hookapi.Facts
	Tool  Tool
	Args  []string // the arguments without the tool's name and the options

	Format string // the requested output format, or the tool's default; empty if the format depends on the value

	Stdout, stderr bytes.Buffer
	outputPath     string // see Result.OutputPath
}

// run parses the arguments, and runs the tool or prints its help.
func (inv *Invocation) run(ctx context.Context) error {
	flags, runner, err := inv.Tool.parse(inv.Argv[1:])
	if errors.Is(err, errHelp) {
		inv.Stdout.WriteString(inv.Tool.Help())
		return nil
	}
	if err != nil {
		return err
	}

	inv.Args = flags.args
	inv.Format = flags.Format
	return runner(ctx, inv)
}

// makeResult returns the result of a call that has ended with err, or successfully if err is nil. After an error, the
// result's stderr ends with the error.
func (inv *Invocation) makeResult(err error) Result {
	r := Result{Stdout: inv.Stdout.Bytes(), Stderr: inv.stderr.Bytes(), OutputPath: inv.outputPath}
	if err == nil {
		return r
	}

	err = inv.rewordError(err)
	r.Exit = exitCode(err)
	r.Stderr = append(r.Stderr, "ERROR "+err.Error()+"\n"...)
	return r
}

// rewordError returns ErrGone and ErrRelationNotFound in the words that charms know from Juju, without the context
// that an implementation wrapped around them. It returns all other errors unchanged.
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

// IsModern reports whether the charm uses the modern dialect.
func (inv *Invocation) IsModern() bool { return inv.Facts.Dialect == hookapi.Modern }

// TrimName removes white space from the end of a name, except for modern charms. Scripts of classic charms that read
// names from lines can leave the newline on a name, which classic tools always accepted.
func (inv *Invocation) TrimName(given string) string {
	if inv.IsModern() {
		return given
	}
	return strings.TrimRight(given, " \t\r\n")
}

// Arg returns the i-th argument that is not an option, or an empty string if there are fewer arguments.
func (inv *Invocation) Arg(i int) string {
	if i < len(inv.Args) {
		return inv.Args[i]
	}
	return ""
}

// LimitArgs returns a usage error if there are more than n arguments that are not options.
func (inv *Invocation) LimitArgs(n int) error {
	if len(inv.Args) > n {
		return UsageErrorf("unrecognized args: %q", inv.Args[n:])
	}
	return nil
}

// RequireUnitArgument returns a usage error if there is no local unit. A tool calls it if the call names no unit, and
// so means the local unit.
func (inv *Invocation) RequireUnitArgument() error {
	if inv.Facts.Unit == "" {
		return UsageErrorf("no unit specified: name the unit as the last argument, or run juju do with --unit")
	}
	return nil
}

// RequireLocalUnit returns a usage error if there is no local unit, as in juju do without --unit.
func (inv *Invocation) RequireLocalUnit() error {
	if inv.Facts.Unit == "" {
		return UsageErrorf("no unit specified: run juju do with --unit")
	}
	return nil
}

// CheckUnitCall returns a usage error unless there is a local unit, and at most maxArgs arguments.
func (inv *Invocation) CheckUnitCall(maxArgs int) error {
	if err := inv.LimitArgs(maxArgs); err != nil {
		return err
	}
	return inv.RequireLocalUnit()
}

// WriteLog writes a message to the unit's log or, without a hook, to the caller's stderr.
func (inv *Invocation) WriteLog(level, message string) {
	if inv.Hook == nil {
		fmt.Fprintf(&inv.stderr, "%s %s\n", level, message)
		return
	}
	inv.Hook.Log(level, message)
}

// DeprecateFormat prints to stderr that this tool ignores --format, if the option was given. It uses Juju's
// exact words, without a newline, since charm libraries compare the text.
func (inv *Invocation) DeprecateFormat(format string) {
	if format != "" {
		fmt.Fprintf(&inv.stderr, "--format flag deprecated for command %q", inv.Tool.Name)
	}
}
