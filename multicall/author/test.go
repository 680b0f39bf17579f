package author

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/author/isolation"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// testCmd is the command charm test. It runs each script in a process of its own; script.go is that process.
type testCmd struct {
	Dir     string        `arg:"" optional:"" default:"." help:"Test the charm in this directory; default: the current one."`
	Scripts string        `name:"run" placeholder:"REGEXP" help:"Run only the scripts whose names match; also -run."`
	Verbose bool          `short:"v" help:"Print the output of all scripts, not only of those that fail."`
	State   string        `placeholder:"URL" help:"Keep the state at etcd://HOST:PORT instead of in memory; needs --network."`
	Network bool          `help:"Let hooks use the network of this host. Otherwise they have only a loopback interface."`
	OnHost  bool          `help:"Let hooks change this host, without any isolation."`
	Force   bool          `help:"Ignore that the charm does not support the series (base) of this host, as juju deploy --force does."`
	Timeout time.Duration `default:"5m" placeholder:"DURATION" help:"Fail a script that takes longer than this; default 5m."`
	Shell   bool          `help:"Open a shell when the script ends; only with a single script."`

	Repin bool `help:"Fetch the store's current releases of the charms that scripts deploy by name, and pin these releases."`

	WithPackages string `name:"with-packages" placeholder:"DIR" help:"Add the Python packages in DIR, a directory of packages or a virtual environment, to the charm's venv."`

	Coverage bool `help:"Print the hooks, actions, options and relations that no test covers."`

	Script   string `hidden:"" help:"Run this script in this process."`
	Folder   string `hidden:"" help:"Keep the files of this script in this directory."`
	Isolated bool   `hidden:"" help:"This process is already isolated from the host."`
	Fetched  string `hidden:"" help:"The directories of the charms that were fetched from the store, by name, as JSON."`
}

// probe is given instead of a script's path, to find out whether this host can isolate hooks.
const probe = "probe"

// otherSeries is part of a script's output if deploy has refused a charm because of its series.
const otherSeries = "but machines of this model have "

// Run runs the scripts in parallel, each in a separate process, and prints their results. With --coverage, it
// also prints which parts of the charm no script has touched. It returns an error that names the scripts that
// have failed. In the process of a script, Run runs that script.
func (c testCmd) Run(a *author) error {
	isScriptProcess := c.Script != ""
	if isScriptProcess {
		return c.runScript(a)
	}

	scripts, err := c.prepare(a)
	if err != nil {
		return err
	}

	var touchable touched
	if c.Coverage {
		touchable, err = a.findTouchable(c.Dir)
		if err != nil {
			return err
		}
	}

	c.WithPackages, err = findPackages(c.WithPackages)
	if err != nil {
		return err
	}

	results := c.runScripts(a, scripts)
	if c.Coverage {
		printCoverage(a.streams.Out, touchable, results.touched)
	}
	if failed := results.failed; len(failed) > 0 {
		err := fmt.Errorf("%d of %d scripts failed: %s", len(failed), len(scripts), strings.Join(failed, ", "))
		if results.refusedSeries {
			return console.Hint(err, "to test a charm for a different series on this host: charm test --force")
		}
		return err
	}

	// An interruption is an error even if all scripts had already succeeded.
	return a.ctx.Err()
}

// prepare checks the options, and sets those that depend on this host and on the scripts: OnHost, Force and
// Fetched. It also makes Dir an absolute path. It returns the paths of the scripts to run.
func (c *testCmd) prepare(a *author) (scripts []string, err error) {
	if c.Timeout <= 0 {
		return nil, console.Usage(fmt.Errorf("--timeout must be greater than 0, not %s", c.Timeout))
	}
	if c.Coverage && c.Shell {
		return nil, console.Usage(errors.New("--coverage cannot be used with --shell"))
	}

	scripts, err = c.findScripts()
	if err != nil {
		return nil, err
	}
	if err := c.chooseIsolation(a); err != nil {
		return nil, err
	}
	if err := c.takeDefaultForce(); err != nil {
		return nil, err
	}

	folders, err := c.fetchCharms(a, scripts)
	if err != nil {
		return nil, err
	}
	c.Fetched, err = encodeFolders(folders)
	return scripts, err
}

// scriptResults are the results of all scripts.
type scriptResults struct {
	touched       touched  // the parts of the charm that any script has touched
	failed        []string // the names of the scripts that failed
	refusedSeries bool     // whether deploy has refused a charm because of its series
}

// runScripts runs the scripts in parallel, two at a time for each CPU, and prints the result of each.
func (c testCmd) runScripts(a *author, scripts []string) scriptResults {
	results := scriptResults{touched: touched{}}
	var printing sync.Mutex
	var running sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.NumCPU())

	for _, script := range scripts {
		slots <- struct{}{}

		running.Go(func() {
			began := time.Now()
			result := "ok  "
			name := scriptName(script)
			out, err := c.startScript(a, script)
			<-slots

			// The lock also protects results.
			printing.Lock()
			defer printing.Unlock()
			// takeTouched returns the output without the report of touched parts.
			out = results.touched.takeTouched(out)
			if err != nil {
				result = "FAIL"
				results.failed = append(results.failed, name)
				results.refusedSeries = results.refusedSeries || bytes.Contains(out, []byte(otherSeries))
			}
			fmt.Fprintf(a.streams.Out, "%s %s (%.2fs)\n%s", result, name, time.Since(began).Seconds(), out)
		})
	}

	running.Wait()
	return results
}

// findPackages returns the absolute path of the directory that contains the Python packages. This is a
// subdirectory of dir if dir is a virtual environment, and otherwise dir itself. It returns "" if dir is "".
func findPackages(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}

	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	// Glob fails only for an invalid pattern.
	inEnvironment, _ := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if len(inEnvironment) > 0 {
		return inEnvironment[0], nil
	}
	if _, err := os.ReadDir(dir); err != nil {
		return "", fmt.Errorf("cannot read the packages: %w", err)
	}

	return dir, nil
}

// takeDefaultForce sets Force if new environments on this host accept charms for other series by default. The
// environments of scripts do not have these defaults, since each script has its own directory of
// environments.
func (c *testCmd) takeDefaultForce() error {
	h, err := home.Find()
	if err != nil {
		return err
	}
	defaults, err := h.Defaults()
	if err != nil {
		return err
	}

	c.Force = c.Force || defaults[state.AllowOtherSeries] == "true"
	return nil
}

// chooseIsolation finds out, once for all scripts, whether this host can isolate hooks, unless --on-host is
// set. If the host can, it prints the files that hooks cannot see. If the host cannot, it returns an error for
// root. For other users it sets OnHost, and warns that hooks can change everything that the user can change.
// It also returns an error for --state if hooks have no network.
func (c *testCmd) chooseIsolation(a *author) error {
	if c.State != "" && !c.OnHost && !c.Network {
		return console.Hint(
			console.Usage(fmt.Errorf("--state %s needs a network, which hooks do not have", c.State)),
			"add --network",
		)
	}

	if c.OnHost {
		return nil
	}

	// The probe isolates its own process, and prints the files that the process cannot see.
	out, err := c.startScript(a, probe)
	output := strings.TrimSpace(string(out))
	if err == nil {
		unseen := output
		if unseen != "" {
			fmt.Fprintf(a.streams.Err, "hooks cannot see these files of this host:\n%s\n", unseen)
		}
		return nil
	}

	isolationErr := fmt.Errorf("cannot isolate hooks from this host: %w: %s", err, output)
	if os.Getuid() == 0 {
		return console.Hint(isolationErr, "to let hooks change this host: charm test --on-host")
	}

	fmt.Fprintf(a.streams.Err, "%v; hooks can change everything that this user can change\n", isolationErr)
	c.OnHost = true
	return nil
}

// scriptName returns the name of a script, by which -run selects it.
func scriptName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txtar") }

// findScripts returns the paths of the charm's scripts whose names match -run. It also makes c.Dir an
// absolute path. It returns an error if no script matches, or if --shell is set and several match.
func (c *testCmd) findScripts() ([]string, error) {
	want, err := regexp.Compile(c.Scripts)
	if err != nil {
		return nil, console.Usage(err)
	}
	c.Dir, err = filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}

	var scripts []string
	// Glob fails only for an invalid pattern.
	files, _ := filepath.Glob(filepath.Join(c.Dir, "tests", "*.txtar"))
	for _, file := range files {
		if want.MatchString(scriptName(file)) {
			scripts = append(scripts, file)
		}
	}

	if len(scripts) == 0 {
		return nil, fmt.Errorf("there is no script to run in %s", filepath.Join(c.Dir, "tests"))
	}
	if c.Shell && len(scripts) > 1 {
		return nil, console.Usage(fmt.Errorf("--shell needs a single script, but %d match", len(scripts)))
	}
	return scripts, nil
}

// startScript runs one script in a new process of this binary, and returns the output, including that of a
// script that fails. With --shell, the process uses this process's stdin, stdout and stderr instead, unless it
// runs the probe. The process gets a temporary directory, which is removed afterwards.
func (c testCmd) startScript(a *author, script string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "charm-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	var out bytes.Buffer
	cmd := exec.CommandContext(a.ctx, a.parts.Binary)
	cmd.Args = []string{"charm", "test", c.Dir, "--script", script, "--folder", folder, "--state", c.State,
		fmt.Sprintf("--verbose=%t", c.Verbose),
		fmt.Sprintf("--network=%t", c.Network),
		fmt.Sprintf("--on-host=%t", c.OnHost),
		fmt.Sprintf("--shell=%t", c.Shell),
		fmt.Sprintf("--timeout=%s", c.Timeout),
		fmt.Sprintf("--coverage=%t", c.Coverage),
		fmt.Sprintf("--force=%t", c.Force),
		"--fetched=" + c.Fetched,
		"--with-packages=" + c.WithPackages,
	}

	cmd.Stdout = &out
	cmd.Stderr = &out
	if c.Shell && script != probe {
		cmd.Stdin = os.Stdin
		cmd.Stdout = os.Stdout
		cmd.Stderr = os.Stderr
	}

	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !c.OnHost {
		isolation.Prepare(cmd, c.Network)
	}
	// The kernel sends Pdeathsig when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	return out.Bytes(), err
}
