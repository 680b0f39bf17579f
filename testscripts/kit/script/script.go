package script

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/multicall"
	"bijou/state/osutil"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/accessed"
	"bijou/testscripts/kit/applets"
)

// Main is the test main of a package of scripts: its binary is every applet, and the
// programs in more, by their names. Scripts wait more than they work: perCPU of them
// run at a time on each CPU, unless the command line says otherwise. It does not
// return.
func Main(m *testing.M, perCPU int, more map[string]func()) {
	applets.MainWith(m, multicall.Options{Fault: applets.Fault(), AgentState: accessed.AgentState()}, more, func() {
		if err := flag.Set("test.parallel", strconv.Itoa(perCPU*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	})
}

// Extras are what the scripts of one package have beside what all have; the zero
// value is nothing.
type Extras struct {
	Commands map[string]Command
	Setup    func(*testscript.Env) // called last, before a script begins
	// Asked has the agents over SQLite ask state/access for all that they do, and fails a script in which one
	// was refused. With BIJOU_TEST_ACCESS_ALL set, those of all suites do, over each store.
	Asked bool
}

// asksAccess reports whether agents ask state/access, whose store is that.
func (x Extras) asksAccess(store string) bool {
	return x.Asked && store == "sqlite" || os.Getenv("BIJOU_TEST_ACCESS_ALL") != ""
}

// Command is one that scripts may call: with what the script says after its name,
// and whether it wrote "!" before it.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// Run runs every *.txtar beside the test over each store that processes can share,
// all side by side. With -short it runs a dozen of all suites, over SQLite.
func Run(t *testing.T, x Extras) {
	var files []string // none: all
	if testing.Short() {
		suite, err := suiteName()
		if err != nil {
			t.Fatal(err)
		}
		if files = shortFiles(suite); len(files) == 0 {
			t.Skip("-short runs a dozen scripts, and none is of this suite")
		}
	}

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
		runScripts(t, x, "etcd", nil, func() string { return cluster.URL(fmt.Sprintf("/script-%d", scripts.Add(1))) })
	})
}

// RunOnce runs scripts that concern no store, over SQLite only, and not with -short.
func RunOnce(t *testing.T, x Extras, files ...string) {
	if testing.Short() {
		t.Skip("-short runs a dozen scripts, and none of these")
	}
	runScripts(t, x, "sqlite", files, func() string { return "" })
}

// runScripts runs those scripts, or all; stateURL yields a fresh place for the state of
// each, or "" for the default.
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
			if x.asksAccess(store) {
				if err := askAccess(env); err != nil {
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
		Condition: answerCondition,
		Cmds:      commands,
	})
}

// askAccess has the script's agents ask state/access. What they were refused fails the script at its end, after all its
// processes have ended.
func askAccess(env *testscript.Env) error {
	dir := env.WorkDir + "-access"
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // some scripts' agents are another user's
		return err
	}

	env.Vars = append(env.Vars, accessed.Variable+"="+dir)
	env.Defer(func() {
		refused, err := accessed.Refused(dir)
		if err == nil {
			err = accessed.KeepUsed(dir)
		}
		if err != nil {
			env.T().Fatal(err)
		}
		if len(refused) > 0 {
			env.T().Fatal("state/access refuses what agents did:\n  " + strings.Join(refused, "\n  "))
		}
	})
	return nil
}

// setUp gives a script its own BIJOU_HOME, and takes down at its end whatever
// it bootstrapped there, so that a failed script leaves no process behind.
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
		// A service's name that no other script has: juju-exec finds units by name among the environments
		// of the host, and scripts run beside one another.
		"SERVICE=w"+osutil.Digest([]byte(env.WorkDir))[:12],
		"BIJOU_CHARMHUB_URL=http://127.0.0.1:9", // nothing listens there: no script asks the store of others
		"NO_COLOR=1",
		"LANG=C.UTF-8",
	)
	env.Defer(func() {
		StopLeftovers(home)
		destroyLeftovers(env.WorkDir)
	})
	return nil
}
