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

type testCmd struct {
	Dir     string        `arg:"" optional:"" default:"." help:"The charm's folder; default: this one."`
	Scripts string        `name:"run" placeholder:"REGEXP" help:"Only the scripts whose names match; also -run."`
	Verbose bool          `short:"v" help:"Print what all scripts do, and not only those that fail."`
	State   string        `placeholder:"URL" help:"Keep the state at etcd://HOST:PORT instead of in memory; needs --network."`
	Network bool          `help:"Let hooks use this host's network; else they have a loopback only."`
	OnHost  bool          `help:"Let hooks change this host: nothing is kept apart."`
	Force   bool          `help:"Also a charm that does not support the series (base) of this host, as deploy --force."`
	Timeout time.Duration `default:"5m" placeholder:"DURATION" help:"Fail a script that has not ended after that long; default 5m."`
	Shell   bool          `help:"Open a shell where the script ends; for one script."`

	Repin bool `help:"Fetch anew what scripts deploy by name from the store, and pin that."`

	Coverage bool `help:"Print which hooks, actions, options and relations no test has touched."`

	Script   string `hidden:"" help:"Run this script in this process."`
	Folder   string `hidden:"" help:"In that folder."`
	Isolated bool   `hidden:"" help:"In which this process is kept from the host already."`
	Fetched  string `hidden:"" help:"Where the charms of the store are, by name, as JSON."`
}

// probe is no script: it only finds out if there can be isolation.
const probe = "probe"

// otherSeries stands in what a script prints if deploy has refused a charm for its series.
const otherSeries = "and machines of this model have "

// Run runs the scripts in parallel, each in a process of its own, two for each CPU.
func (c testCmd) Run(a *author) error {
	if c.Script != "" {
		return c.runScript(a)
	}

	switch {
	case c.Timeout <= 0:
		return console.Usage(fmt.Errorf("--timeout %s gives a script no time", c.Timeout))
	case c.Coverage && c.Shell:
		return console.Usage(errors.New("--coverage cannot be used with --shell"))
	}

	scripts, err := c.findScripts()
	if err != nil {
		return err
	}
	if err := c.checkIsolation(a); err != nil {
		return err
	}
	if err := c.takeDefault(); err != nil {
		return err
	}

	folders, err := c.fetchCharms(a, scripts)
	if err != nil {
		return err
	}
	if c.Fetched, err = encodeFolders(folders); err != nil {
		return err
	}

	var all touched
	if c.Coverage {
		if all, err = a.findTouchable(c.Dir); err != nil {
			return err
		}
	}

	found := touched{}
	var failed []string
	isForeign := false
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
			printing.Lock()
			defer printing.Unlock()

			out = found.takeTouched(out)
			if err != nil {
				result = "FAIL"
				failed = append(failed, name)
				isForeign = isForeign || bytes.Contains(out, []byte(otherSeries))
			}
			fmt.Fprintf(a.streams.Out, "%s %s (%.2fs)\n%s", result, name, time.Since(began).Seconds(), out)
		})
	}

	running.Wait()
	if c.Coverage {
		printCoverage(a.streams.Out, all, found)
	}
	if len(failed) > 0 {
		err := fmt.Errorf("%d of %d scripts failed: %s", len(failed), len(scripts), strings.Join(failed, ", "))
		if isForeign {
			return console.Hint(err, "charm test --force runs a charm of another series here")
		}
		return err
	}

	return a.ctx.Err()
}

// takeDefault makes the script's environments accept the charms that new environments of this host accept,
// since scripts have their own directory of environments.
func (c *testCmd) takeDefault() error {
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

// checkIsolation finds out, once for all scripts, whether this host can isolate hooks. If it cannot,
// checkIsolation refuses to run hooks as root; for other users it warns that hooks can change all of the
// user's files.
func (c *testCmd) checkIsolation(a *author) error {
	if c.State != "" && !c.OnHost && !c.Network {
		return console.Hint(
			console.Usage(fmt.Errorf("--state %s is behind a network, and hooks have none", c.State)),
			"add --network",
		)
	}

	if c.OnHost {
		return nil
	}

	out, err := c.startScript(a, probe)
	said := strings.TrimSpace(string(out))
	if err == nil {
		if said != "" {
			fmt.Fprintf(a.streams.Err, "hooks do not see all of this host:\n%s\n", said)
		}
		return nil
	}

	why := fmt.Errorf("what hooks do cannot be kept from this host: %w: %s", err, said)
	if os.Getuid() == 0 {
		return console.Hint(why, "--on-host lets hooks change it")
	}

	fmt.Fprintf(a.streams.Err, "%v; they change what this user may change\n", why)
	c.OnHost = true
	return nil
}

// scriptName returns the name of a script, by which -run selects it.
func scriptName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txtar") }

// findScripts returns the paths of the scripts in the charm's directory that match -run. It also makes c.Dir an
// absolute path.
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
		return nil, console.Usage(fmt.Errorf("--shell is for one script, and %d match", len(scripts)))
	}
	return scripts, nil
}

// startScript runs this binary again, for one script, and returns its output.
func (c testCmd) startScript(a *author, script string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "charm-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	var out bytes.Buffer
	cmd := exec.CommandContext(a.ctx, a.parts.Binary)
	cmd.Args = []string{"charm", "test", c.Dir, "--script", script, "--folder", folder, "--state", c.State,
		fmt.Sprintf("--verbose=%t", c.Verbose), fmt.Sprintf("--network=%t", c.Network), fmt.Sprintf("--on-host=%t", c.OnHost),
		fmt.Sprintf("--shell=%t", c.Shell), fmt.Sprintf("--timeout=%s", c.Timeout), fmt.Sprintf("--coverage=%t", c.Coverage), fmt.Sprintf("--force=%t", c.Force), "--fetched=" + c.Fetched}

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
	runtime.LockOSThread() // the signal comes when the thread ends that has started it
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	return out.Bytes(), err
}
