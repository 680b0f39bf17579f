package multicall

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"bijou/agent/unitcall"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/state/actions"
	"bijou/state/charm"
)

type jujuExecGrammar struct {
	Unit            string   `short:"u" default:"-" placeholder:"UNIT" help:"Run the command on UNIT; empty: on the only unit of this machine."`
	Env             string   `short:"e" placeholder:"MODEL" help:"Choose the unit in MODEL (a name or UUID) if several models on this machine have a unit of that name."`
	Relation        string   `short:"r" placeholder:"RELATION" help:"Run the command as a hook of RELATION, an id or a name."`
	RemoteUnit      string   `placeholder:"UNIT" help:"Run as if UNIT had caused the hook of --relation; default: the relation's only remote unit."`
	RemoteApp       string   `placeholder:"APPLICATION" help:"Check that APPLICATION is at the other end of --relation."`
	ForceRemoteUnit bool     `help:"Accept a remote unit that is not in the relation, or no remote unit; with --relation."`
	NoContext       bool     `help:"Run the command at once, for no unit and without hook tools."`
	Words           []string `arg:"" optional:"" passthrough:"partial" name:"unit command" help:"The unit, unless --unit names it, and a line for a shell; several words make one line."`
}

// runJujuExec runs juju-exec and juju-run, which charms' programs call outside of hooks. Except with --no-context,
// it refuses to run in a hook that has not ended, since the command would wait for the end of the hook.
func runJujuExec(c applet.Call) int {
	var g jujuExecGrammar
	_, err := console.Parse(c.Streams, console.Command{Name: c.Name, Grammar: &g, Help: helpFiles}, c.Args)
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}

	if g.NoContext {
		return runWithoutContext(c, g)
	}

	request, err := g.parseRequest()
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}

	socket := os.Getenv("JUJU_AGENT_SOCKET_ADDRESS")
	if err := unitcall.CheckHook(socket, os.Getenv("JUJU_CONTEXT_ID")); err != nil {
		return console.Report(c.Streams.Err, console.Hint(fmt.Errorf("%s %w", c.Name, err),
			"the hook can call its tools itself; "+c.Name+" --no-context runs a command at once"))
	}

	ctx, stop := applet.BeginCommand(c)
	defer stop()
	end, err := unitcall.Run(ctx, request)
	if err != nil {
		return console.Report(c.Streams.Err, explainExec(c.Name, err))
	}

	return reportEnd(c, end)
}

// parseRequest returns the request that the command line describes. It accepts a unit's name, or its tag such as
// unit-mysql-0, since Juju names the directories of units in that way. Without the option --unit, whose default is
// "-", the first word can name the unit. Without a unit, the request is for the only unit of the machine.
func (g jujuExecGrammar) parseRequest() (unitcall.Request, error) {
	unit, words := g.splitUnit()
	if unit != "" && parseUnit(unit) == "" {
		return unitcall.Request{}, console.Usage(fmt.Errorf("%q is not a unit's name", unit))
	}

	line := strings.Join(words, " ")
	if strings.TrimSpace(line) == "" {
		return unitcall.Request{}, console.Hint(console.Usage(errors.New("no command given")),
			"as in: juju-exec mysql/0 'config-get port'")
	}
	if len(line) > actions.MaxText {
		return unitcall.Request{}, console.Usage(fmt.Errorf("the command has %d bytes; the limit is %d",
			len(line), actions.MaxText))
	}
	hasRemote := g.RemoteUnit != "" || g.RemoteApp != "" || g.ForceRemoteUnit
	if hasRemote && g.Relation == "" {
		return unitcall.Request{}, console.Usage(errors.New("a remote unit needs --relation"))
	}

	return unitcall.Request{
		Unit:          parseUnit(unit),
		Environment:   g.Env,
		Line:          line,
		Relation:      g.Relation,
		RemoteUnit:    g.RemoteUnit,
		RemoteService: g.RemoteApp,
		Force:         g.ForceRemoteUnit,
	}, nil
}

// splitUnit returns the word that names the unit, and the words of the command. unit is empty if no unit is given.
func (g jujuExecGrammar) splitUnit() (unit string, words []string) {
	// The default is "-", since an empty --unit stands for the only unit of the machine.
	isOptionGiven := g.Unit != "-"
	switch {
	case isOptionGiven:
		return g.Unit, g.Words
	case len(g.Words) > 0 && parseUnit(g.Words[0]) != "":
		return g.Words[0], g.Words[1:]
	}

	return "", g.Words
}

// parseUnit returns the name of a unit for the unit's name or tag, and "" for any other word.
func parseUnit(word string) string {
	if charm.IsUnit(word) {
		return word
	}

	tag, isTag := strings.CutPrefix(word, "unit-")
	dash := strings.LastIndex(tag, "-")
	if !isTag || dash < 0 {
		return ""
	}

	unit := tag[:dash] + "/" + tag[dash+1:]
	if !charm.IsUnit(unit) {
		return ""
	}
	return unit
}

// explainExec adds a hint to an error that the caller of the applet called name can fix. It returns other errors
// unchanged.
func explainExec(name string, err error) error {
	switch {
	case errors.Is(err, unitcall.ErrNotFound) && os.Geteuid() != 0:
		return console.Hint(err, "only the user whose agent runs the unit can run this command; if that is root: sudo "+name+" ...")
	case errors.Is(err, unitcall.ErrNotFound):
		return console.Hint(err, "the unit's agent must run on this host, as this user; juju status shows the units")
	case errors.Is(err, unitcall.ErrAmbiguous):
		return console.Hint(err, name+" --env MODEL chooses the model, by name or uuid")
	}

	return err
}

// reportEnd prints the output of a command that has ended, and returns the command's exit code. If the command has
// failed without an exit code that shows this, reportEnd also prints the reason, and returns the code that the agent
// has chosen.
func reportEnd(c applet.Call, end unitcall.End) int {
	fmt.Fprint(c.Streams.Out, end.Stdout)
	fmt.Fprint(c.Streams.Err, end.Stderr)
	if end.Dropped > 0 {
		fmt.Fprintf(c.Streams.Err, "warning: %d bytes of output are missing: %d of each stream are kept\n",
			end.Dropped, actions.MaxOutput)
	}
	if end.Problem != "" {
		// The exit code below is end.Exit, not the code that Report returns.
		console.Report(c.Streams.Err, fmt.Errorf("the command failed: %s", end.Problem))
	}

	return end.Exit
}

// runWithoutContext runs the command as a child of this process, without a unit. It returns the command's exit code.
// If there is none, it prints the reason and returns the exit code of that error.
func runWithoutContext(c applet.Call, g jujuExecGrammar) int {
	if len(g.Words) == 0 {
		return console.Report(c.Streams.Err, console.Usage(errors.New("no command given")))
	}

	command := exec.Command("/bin/bash", "-c", strings.Join(g.Words, " "))
	command.Stdin = c.Streams.In
	command.Stdout = c.Streams.Out
	command.Stderr = c.Streams.Err
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return console.Report(c.Streams.Err, fmt.Errorf("cannot run the command: %w", err))
	}
	// The code is -1 if a signal has ended the command.
	if code := command.ProcessState.ExitCode(); code >= 0 {
		return code
	}

	return console.Report(c.Streams.Err, fmt.Errorf("the command did not exit normally: %w", err))
}
