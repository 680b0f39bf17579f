package script

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/multicall"
	"bijou/state"
	"bijou/state/osutil"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/accessed"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/confined"
)

// Main is the test main of a package of scripts. Its binary is every applet, and also each program in the map
// more, under its name. Scripts mostly wait, so perCPU scripts per CPU run at a time, unless the command line
// sets a different number. It does not return.
func Main(m *testing.M, perCPU int, more map[string]func()) {
	applets.MainWith(m, multicall.Options{Fault: applets.Fault(), AgentState: agentState()}, more, func() {
		if err := flag.Set("test.parallel", strconv.Itoa(perCPU*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	})
}

// agentState returns a function that wraps the state of this process's agents, or nil to leave it as it was
// opened.
func agentState() func(opened *state.State, machine string) *state.State {
	if s := confined.AgentState(); s != nil {
		return s
	}
	return accessed.AgentState()
}

// Extras are the additional features of one package's scripts. The zero value adds nothing.
type Extras struct {
	Commands map[string]Command
	Setup    func(*testscript.Env) // the last function that is called before a script begins
	// If Asked is true, the agents over SQLite check each read and write with state/access. A script fails if
	// an agent was refused. With BIJOU_TEST_ACCESS_ALL this applies to all suites, over each store.
	Asked bool
	// If Confined is true, the agents reach the state through a gateway, which refuses every request that
	// state/access refuses. A refusal fails its script, unless Refused contains a substring of the refusal
	// for that script. With BIJOU_TEST_CONFINED_ALL this applies to all suites.
	Confined bool
	Refused  map[string][]string
}

// asksAccess reports whether agents over that store check their requests with state/access.
func (x Extras) asksAccess(store string) bool {
	return x.Asked && store == "sqlite" || os.Getenv("BIJOU_TEST_ACCESS_ALL") != ""
}

// isConfined reports whether the agents reach the state through a gateway.
func (x Extras) isConfined() bool { return x.Confined || os.Getenv("BIJOU_TEST_CONFINED_ALL") != "" }

// Command is a command of scripts. Its parameters are its arguments, and whether "!" precedes it.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// Run runs every *.txtar beside the test over each store that processes can share, in parallel. With
// -short it runs a dozen scripts of all suites, over SQLite.
func Run(t *testing.T, x Extras) {
	var files []string // if empty, all files
	if testing.Short() {
		suite, err := suiteName()
		if err != nil {
			t.Fatal(err)
		}
		if files = shortFiles(suite); len(files) == 0 {
			t.Skip("-short runs a dozen scripts, and none is of this suite")
		}
	}

	runOverStores(t, x, files)
}

// runOverStores runs those scripts, or all, over SQLite and, unless -short was given, over etcd.
func runOverStores(t *testing.T, x Extras, files []string) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		runScripts(t, x, "sqlite", files, func() string { return "" })
	})
	if testing.Short() {
		return
	}
	t.Run("etcd", func(t *testing.T) {
		etcdtest.Need(t)
		t.Parallel()
		cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
		var scripts atomic.Int64
		runScripts(t, x, "etcd", files, func() string { return cluster.URL(fmt.Sprintf("/script-%d", scripts.Add(1))) })
	})
}

// RunConfined runs scripts as Run does, with agents that reach the state through a gateway. It also runs the
// scripts of other suites that are named, such as ../units/hooks. With -short it skips all.
func RunConfined(t *testing.T, x Extras, elsewhere ...string) {
	if testing.Short() {
		t.Skip("-short runs a dozen scripts, and none of these")
	}
	files, err := filepath.Glob("*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range elsewhere {
		files = append(files, name+".txtar")
	}

	x.Confined = true
	runOverStores(t, x, files)
}

// RunOnce runs scripts that do not depend on the store, over SQLite only. With -short it skips them.
func RunOnce(t *testing.T, x Extras, files ...string) {
	if testing.Short() {
		t.Skip("-short runs a dozen scripts, and none of these")
	}
	runScripts(t, x, "sqlite", files, func() string { return "" })
}

// runScripts runs these scripts, or all. stateURL returns a new place for the state of each script, or
// "" for the default.
func runScripts(t *testing.T, x Extras, store string, files []string, stateURL func() string) {
	commands := map[string]Command{
		"eventually": awaitOutput,
		"follow":     followPage,
		"python":     setPython,
	}
	maps.Copy(commands, x.Commands)
	dir := "."
	if files != nil {
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir:   dir,
		Files: files,
		Setup: func(env *testscript.Env) error {
			if url := stateURL(); url != "" {
				env.Vars = append(env.Vars, "BIJOU_STATE="+url)
			}
			switch {
			case x.isConfined():
				if err := watchRefusals(env, confined.Variable, x.Refused); err != nil {
					return err
				}
			case x.asksAccess(store):
				if err := watchRefusals(env, accessed.Variable, nil); err != nil {
					return err
				}
			}
			if err := setUp(env); err != nil {
				return err
			}
			if x.Setup != nil {
				x.Setup(env)
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "confined" {
				return x.isConfined(), nil
			}
			return answerCondition(cond)
		},
		Cmds: commands,
	})
}

// watchRefusals makes the script's agents record the refusals of state/access in the directory that the
// variable names. An unexpected refusal fails the script at its end, after all its processes have ended.
func watchRefusals(env *testscript.Env, variable string, expected map[string][]string) error {
	dir := env.WorkDir + "-access"
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	// In some scripts agents run as a different user.
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}

	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	env.Vars = append(env.Vars, variable+"="+dir)
	env.Defer(func() {
		refused, err := accessed.Refused(dir)
		if err == nil {
			err = accessed.KeepUsed(dir)
		}
		if err != nil {
			env.T().Fatal(err)
		}

		refused = slices.DeleteFunc(refused, func(line string) bool {
			return slices.ContainsFunc(expected[name], func(part string) bool { return strings.Contains(line, part) })
		})
		if len(refused) > 0 {
			env.T().Fatal("state/access refuses what agents did:\n  " + strings.Join(refused, "\n  "))
		}
	})
	return nil
}

// setUp gives a script its own BIJOU_HOME. At the script's end it destroys everything that was
// bootstrapped there, so that a failed script leaves no process behind.
func setUp(env *testscript.Env) error {
	charms, err := filepath.Abs(filepath.Join("..", "..", "charms"))
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	env.Vars = append(env.Vars,
		"BIJOU_HOME="+home,
		"CHARMS="+charms,
		"UNITS="+filepath.Join(home, "default", "machines", "0", "agents"),
		"AGENTPID="+filepath.Join(home, "default", "machines", "0", "agent.pid"),
		// This name of a service is unique to the script, because juju-exec looks for units by name
		// among all environments of the host, and scripts run in parallel.
		"SERVICE=w"+osutil.Digest([]byte(env.WorkDir))[:12],
		"BIJOU_CHARMHUB_URL=http://127.0.0.1:9", // nothing listens there: no script uses the real store of charms
		"NO_COLOR=1",
		"LANG=C.UTF-8",
	)
	env.Defer(func() {
		StopLeftovers(home)
		destroyLeftovers(env.WorkDir)
	})
	return nil
}
