package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/status"
)

// replayCmd is the command charm replay.
type replayCmd struct {
	Unit        string `arg:"" help:"The unit."`
	Number      int64  `arg:"" help:"The hook's number, as juju hook-history shows it."`
	AsTest      string `name:"as-test" required:"" placeholder:"FILE" help:"Write the script to this file: CHARM/tests/NAME.txtar."`
	Environment string `short:"e" placeholder:"NAME" help:"Read from the model NAME; default: the model that juju uses."`
}

// Run writes a script that brings a fresh environment to the unit's present state, and then makes the hook
// run. It does not overwrite a file.
func (c replayCmd) Run(a *author) error {
	dir, err := c.testedDir()
	if err != nil {
		return err
	}
	read, err := charm.ReadDir(dir)
	if err != nil {
		if !charm.IsCharm(dir) {
			return console.Hint(err, "give a file in the directory tests of the unit's charm: --as-test CHARM/tests/NAME.txtar")
		}
		return err
	}

	r := replay{meta: *read.Meta}
	r.service, _, _ = strings.Cut(c.Unit, "/")
	if r.service == c.Unit {
		return console.Usage(fmt.Errorf("%q is not a unit", c.Unit))
	}
	if err := c.readUnit(a, &r); err != nil {
		return err
	}

	text, err := r.script()
	if err != nil {
		return fmt.Errorf("cannot turn hook %d of %s into a test: %w", c.Number, c.Unit, err)
	}
	if err := writeNew(c.AsTest, text); err != nil {
		return err
	}

	// If the charm does not support the unit's series, the test also needs --force.
	forceOption := ""
	if r.series != "" && !r.meta.Supports(r.series) {
		forceOption = " --force"
	}
	fmt.Fprintf(a.streams.Out, "wrote %s: hook %q of %s\nrun it with: charm test %s%s -run '^%s$'\n",
		c.AsTest, r.run.Hook, c.Unit, dir, forceOption, scriptName(c.AsTest))
	return nil
}

// testedDir returns the directory of the charm to whose tests the file will belong. It returns an error
// unless the file is CHARM/tests/NAME.txtar.
func (c replayCmd) testedDir() (string, error) {
	path, err := filepath.Abs(c.AsTest)
	if err != nil {
		return "", err
	}

	tests := filepath.Dir(path)
	if filepath.Ext(path) != ".txtar" || filepath.Base(tests) != "tests" {
		return "", console.Usage(fmt.Errorf("cannot write %s: charm test runs only the files tests/*.txtar in the directory of a charm", c.AsTest))
	}

	return filepath.Dir(tests), nil
}

// readUnit runs juju to read everything that the script needs about the unit and its service, and sets the
// fields of r about them. It returns an error if the unit's history does not have the finished hook.
func (c replayCmd) readUnit(a *author, r *replay) error {
	var history []status.HookRun
	if err := c.ask(a, &history, "hook-history", c.Unit); err != nil {
		return err
	}

	i := slices.IndexFunc(history, func(run status.HookRun) bool { return run.Number == c.Number && !run.Running })
	if i < 0 {
		return console.Hint(fmt.Errorf("there is no finished hook %d in the history of %s", c.Number, c.Unit),
			"to list the hooks in the history: juju hook-history "+c.Unit)
	}
	// The history begins with the oldest hook.
	r.run = history[i]
	r.earlier = history[:i]
	r.later = slices.DeleteFunc(history[i+1:], func(run status.HookRun) bool { return run.Running })

	units := map[string]status.UnitDetail{}
	if err := c.ask(a, &units, "show-unit", c.Unit); err != nil {
		return err
	}
	var screen struct {
		Applications map[string]struct{ Series string }
	}
	if err := c.ask(a, &screen, "status", r.service); err != nil {
		return err
	}

	r.series = screen.Applications[r.service].Series
	r.name = c.Unit
	r.unit = units[c.Unit]
	// The script must not contain secrets.
	r.unit.HideSettings()

	return c.ask(a, &r.optionChanges, "config", r.service, "--history")
}

// ask runs a juju command, and decodes its JSON output into result. If the command fails, ask prints the
// command's messages, and returns an error with its exit code.
func (c replayCmd) ask(a *author, result any, args ...string) error {
	args = append([]string{"juju"}, append(args, "--format", "json")...)
	if c.Environment != "" {
		args = append(args, "-e", c.Environment)
	}

	cmd := exec.CommandContext(a.ctx, a.parts.Binary)
	// The binary runs the applet that Args[0] names.
	cmd.Args = args
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exitErr, ok := errors.AsType[*exec.ExitError](err); ok && exitErr.Exited() {
		a.streams.Err.Write(stderr.Bytes())
		return console.Exit(exitErr.ExitCode(), nil)
	}
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", strings.Join(args, " "), err)
	}

	// Keep the numbers of options as they were written.
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(result); err != nil {
		return fmt.Errorf("cannot parse the output of %s: %w", strings.Join(args, " "), err)
	}

	return nil
}

// writeNew creates a file with the text, and its directory if necessary. It returns an error with a hint if the
// file exists.
func writeNew(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return console.Hint(fmt.Errorf("cannot write %s: the file exists", path), "charm replay never overwrites a file: choose another name")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	_, err = f.Write(text)
	return err
}
