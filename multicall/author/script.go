package author

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	"rsc.io/script"

	"bijou/multicall/author/isolation"
	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/childenv"
)

// scriptRun is one run of one script, in this process.
type scriptRun struct {
	testCmd
	*author
	work    string        // the script's working directory, a copy of the charm
	environ []string      // the environment of the programs that the script calls
	log     bytes.Buffer  // the output, which is printed if the script fails
	state   *script.State // the state of the script's engine; nil before the script begins
}

// isolate isolates this process from the host, and replaces it with this binary, which then runs the script.
// It returns only with an error, or if the script is the probe. For the probe, it prints the files that an
// isolated process cannot see.
func (c testCmd) isolate(a *author) error {
	// Each thread has its own capabilities, and Exec must use the thread that has given them up.
	runtime.LockOSThread()
	unseen, err := isolation.Enter(c.Folder, c.Network)
	if err != nil {
		return fmt.Errorf("cannot set up the isolation: %w", err)
	}
	if c.Script == probe {
		for _, path := range unseen {
			fmt.Fprintln(a.streams.Out, path)
		}
		return nil
	}

	return isolation.Exec(a.parts.Binary, append(os.Args, "--isolated"))
}

// runScript runs one script in a copy of the charm. Unless --on-host is set, it first isolates this process, as
// isolate describes. It prints the script's output if the script fails or --verbose is set. With --coverage it also
// prints the parts of the charm that the script has touched, and with --shell it then opens a shell. If only the
// script fails, it returns an error with an exit code and without a message.
func (c testCmd) runScript(a *author) error {
	if !c.OnHost && !c.Isolated {
		return c.isolate(a)
	}

	r := &scriptRun{author: a, testCmd: c, work: filepath.Join(c.Folder, scriptName(c.Script))}
	archive, err := txtar.ParseFile(c.Script)
	if err != nil {
		return err
	}
	if err := os.CopyFS(r.work, os.DirFS(c.Dir)); err != nil {
		return fmt.Errorf("cannot copy the charm: %w", err)
	}
	if c.WithPackages != "" {
		if err := os.CopyFS(filepath.Join(r.work, "venv"), os.DirFS(c.WithPackages)); err != nil {
			return fmt.Errorf("cannot copy the packages: %w", err)
		}
	}
	if err := r.setUp(archive); err != nil {
		return fmt.Errorf("cannot create a model: %w\n%s", err, &r.log)
	}

	// An isolated model with a local state ends with this process. Any other model must be destroyed.
	if c.OnHost || c.State != "" {
		defer func() { r.call(io.Discard, "juju", "destroy-model", "-y", "--force", "default") }()
	}

	failure := r.execute(archive)
	if failure != nil || c.Verbose {
		r.log.WriteTo(a.streams.Out)
	}
	if c.Coverage {
		if err := r.printTouched(archive); err != nil {
			return err
		}
	}

	if c.Shell {
		r.call(os.Stdout, cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	}
	if failure != nil {
		return console.Exit(console.ExitFailure, nil)
	}

	return nil
}

// setUp prepares the run. It creates symlinks to this binary in the directory tools, and writes the script's
// own programs (its files bin/NAME) into the directory fakes. It sets the variables of the script and of this
// process. PATH names fakes first, so that a script can replace any program. Then it bootstraps the
// environment.
func (r *scriptRun) setUp(archive *txtar.Archive) error {
	fakes := filepath.Join(r.Folder, "fakes")
	tools := filepath.Join(r.Folder, "tools")
	if err := r.linkApplets(tools); err != nil {
		return err
	}
	if err := r.setVariables(fakes, tools); err != nil {
		return err
	}
	if err := writePrograms(archive, fakes); err != nil {
		return err
	}

	return r.call(&r.log, "juju", "bootstrap", "--config", fmt.Sprintf("%s=%t", state.AllowOtherSeries, r.Force))
}

// linkApplets creates the directory, with a symlink to this binary for each applet.
func (r *scriptRun) linkApplets(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}

	for _, name := range r.parts.Applets {
		if err := os.Symlink(r.parts.Binary, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// setVariables sets the environment variables in r.environ, for the programs that the script calls: those of this
// process that such programs may have, and new ones. PATH finds the programs in fakes first, then those in tools.
// setVariables also sets the new variables in this process, which looks up programs in PATH.
func (r *scriptRun) setVariables(fakes, tools string) error {
	home := filepath.Join(r.Folder, "home")
	store := "" // empty for a file in the environment's directory
	if r.State != "" {
		store = strings.TrimSuffix(r.State, "/") + "/" + filepath.Base(r.Folder)
	}

	vars := map[string]string{
		"BIJOU_HOME":  home,
		"BIJOU_STATE": store,
		"UNITS":       filepath.Join(home, "default", "machines", "0", "agents"),
		"FAKES":       fakes,
		"PATH":        fakes + ":" + tools + ":" + os.Getenv("PATH"),
		"HOME":        r.work,
		"WORK":        r.work,
		"TMPDIR":      r.Folder,
		"NO_COLOR":    "1",
		"LANG":        "C.UTF-8",
	}

	// Of this process's variables, the programs get those that the commands of bijou quickstart get.
	r.environ = childenv.New(os.Environ(), childenv.Tour)
	for name, value := range vars {
		r.environ = append(r.environ, name+"="+value)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// writePrograms writes the archive's files bin/NAME into the directory, and makes them executable.
func writePrograms(archive *txtar.Archive, dir string) error {
	for _, f := range archive.Files {
		name, isProgram := strings.CutPrefix(f.Name, "bin/")
		if !isProgram {
			continue
		}
		if err := writeProgram(filepath.Join(dir, name), string(f.Data)); err != nil {
			return err
		}
	}
	return nil
}

// execute runs the script, and ends the processes that it has left running. It returns an error if the script
// cannot begin, fails, or does not end within the timeout, or if such a process ends unexpectedly. If the script
// fails or does not end, it also logs the state of the environment.
func (r *scriptRun) execute(archive *txtar.Archive) error {
	engine, err := r.newEngine()
	if err != nil {
		fmt.Fprintf(&r.log, "cannot begin: %v\n", err)
		return err
	}

	ctx, stop := context.WithTimeout(r.ctx, r.Timeout)
	defer stop()
	r.state, err = script.NewState(ctx, r.work, r.environ)
	if err == nil {
		err = r.state.ExtractFiles(archive)
	}
	if err != nil {
		fmt.Fprintf(&r.log, "cannot begin: %v\n", err)
		return err
	}

	err = engine.Execute(r.state, r.Script, bufio.NewReader(bytes.NewReader(archive.Comment)), &r.log)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the script did not end within %s", err, r.Timeout)
	}
	if err != nil {
		r.logLastScreen(err)
	}

	// This ends the processes that the script has left running.
	if closeErr := r.state.CloseAndWait(io.Discard); closeErr != nil && err == nil {
		fmt.Fprintf(&r.log, "a program that the script has left running has failed: %v\n", closeErr)
		err = closeErr
	}
	return err
}

// newEngine returns an engine for scripts. Its commands are those of the library, the applets, and the
// commands of this package. It returns an error if it cannot decode --fetched.
func (r *scriptRun) newEngine() (*script.Engine, error) {
	engine := script.NewEngine()
	engine.Quiet = !r.Verbose
	for _, name := range r.parts.Applets {
		engine.Cmds[name] = script.Program(name, func(cmd *exec.Cmd) error { return cmd.Process.Kill() }, time.Second)
	}
	maps.Copy(engine.Cmds, r.commands())

	folders, err := decodeFolders(r.Fetched)
	if err != nil {
		return nil, err
	}
	// This juju deploys charms of the store from the fetched files in folders.
	engine.Cmds["juju"] = storeJuju{Cmd: engine.Cmds["juju"], folders: folders}
	engine.Conds["isolated"] = script.BoolCondition("hooks cannot change the host", !r.OnHost)
	return engine, nil
}

// lastScreenTimeout limits the time to read the state of the environment after a script has ended.
const lastScreenTimeout = 10 * time.Second

// logLastScreen logs the state of the environment after the script has failed. For this, it runs failed hooks
// again with a trace. It logs as much as it can read.
func (r *scriptRun) logLastScreen(failure error) {
	// The script itself may have timed out, so this needs a new timeout.
	ctx, stop := context.WithTimeout(r.ctx, lastScreenTimeout)
	defer stop()
	status, _ := outputWithin(ctx, r.state, "juju", "status")
	logLines, _ := readLog(ctx, r.state)
	lastLines, _ := outputWithin(ctx, r.state, "juju", "debug-log", "-n", "20")
	journal := formatJournal(logLines, nil)
	unsetKeys := r.describeUnsetKeys(ctx, journal)

	// A traced hook takes as long as its first run, so traces have a longer timeout.
	traceCtx, stopTraces := context.WithTimeout(r.ctx, traceTimeout)
	defer stopTraces()
	trace := traceOnce(func(unit, hook, failure string) (place, command string) {
		return r.traceHook(traceCtx, unit, hook, failure)
	})

	fmt.Fprintf(&r.log, "FAIL: %v\n", failure)
	for _, end := range describeEnds(logLines, r.parts.Rules.Tools, time.Now(), trace) {
		fmt.Fprintf(&r.log, "hook: %s\n", end)
	}
	for _, unsetKey := range unsetKeys {
		fmt.Fprintf(&r.log, "hook: %s\n", unsetKey)
	}
	fmt.Fprintf(&r.log, "--- juju status\n%s--- journal\n%s--- juju debug-log -n 20\n%s--- to open a shell at this point: charm test %s -run '^%s$' --shell\n",
		status, journal, lastLines, r.Dir, scriptName(r.Script))
}

// traceOnce returns a function that calls trace only once for the same arguments, and remembers the results.
// A hook that was retried has failed several times, each time at the same command.
func traceOnce(trace traceFunc) traceFunc {
	type result struct{ place, command string }
	results := map[string]result{}

	return func(unit, hook, failure string) (place, command string) {
		run := unit + " " + hook + " " + failure
		traced, isTraced := results[run]
		if !isTraced {
			traced.place, traced.command = trace(unit, hook, failure)
			results[run] = traced
		}
		return traced.place, traced.command
	}
}

// call runs a program as the script would, with the stdin of this process. It writes the program's stdout and
// stderr to out.
func (r *scriptRun) call(out io.Writer, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = r.work
	cmd.Env = r.environ
	cmd.Stdin = os.Stdin
	cmd.Stdout = out
	cmd.Stderr = out
	return cmd.Run()
}
