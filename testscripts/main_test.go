package testscripts

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/multicall"
	"bijou/provision/plugin"
	"bijou/provision/provider/dummy"
	"bijou/testscripts/applets"
	"bijou/testscripts/etcdtest"
	"bijou/testscripts/need"
)

// TestMain makes this binary every applet. Scripts wait more than they work: twice
// as many run at a time as there are CPUs, unless the command line says otherwise.
func TestMain(m *testing.M) {
	dummies := map[string]func(){plugin.Prefix + dummy.Name: serveDummy}
	applets.MainWith(m, multicall.Options{Faults: true}, dummies, func() {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	})
}

// serveDummy is the process of the provider that does as it is told, which any script
// can bootstrap with.
func serveDummy() {
	if err := plugin.Serve(dummy.Make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestScripts runs every *.txtar beside it over each store that processes can share.
func TestScripts(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { runScripts(t, func() string { return "" }) })
	t.Run("etcd", func(t *testing.T) {
		etcdtest.Need(t)
		cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
		var scripts atomic.Int64
		runScripts(t, func() string { return cluster.URL(fmt.Sprintf("/script-%d", scripts.Add(1))) })
	})
}

// runScripts runs all scripts; stateURL yields a fresh place for the state of
// each, or "" for the default.
func runScripts(t *testing.T, stateURL func() string) {
	testscript.Run(t, testscript.Params{
		Dir: ".",
		Setup: func(env *testscript.Env) error {
			if url := stateURL(); url != "" {
				env.Vars = append(env.Vars, "BIJOU_STATE="+url)
			}
			return setup(env)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"address":    address,
			"alerts":     alerts,
			"eventually": eventually,
			"follow":     follow,
			"get":        get,
			"necobin":    necoBin,
			"proxy":      proxy,
			"releases":   releases,
			"python":     python,
			"provider":   sampleProvider,
			"sabakan":    sabakan,
			"shows":      shows,
			"stored":     stored,
			"zipcharm":   zipCharm,
		},
	})
}

// setup gives a script its own BIJOU_HOME, and takes down at its end whatever
// it bootstrapped there, so that a failed script leaves no process behind.
func setup(env *testscript.Env) error {
	charms, err := filepath.Abs("charms")
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	env.Vars = append(env.Vars,
		"BIJOU_HOME="+home,
		"CHARMS="+charms,
		"UNITS="+filepath.Join(home, "default", "machines", "0", "units"),
		"AGENTPID="+filepath.Join(home, "default", "machines", "0", "agent.pid"),
		"NO_COLOR=1",
		"LANG=C.UTF-8",
		"NECO_STATE="+necoState(env),
	)
	env.Values["boot world"] = &bootWorld{}
	env.Defer(func() {
		stopLeftovers(home)
		destroyLeftovers(env.WorkDir)
	})
	return nil
}

// destroyLeftovers takes down all environments below a folder: a script may have
// made a BIJOU_HOME of its own.
func destroyLeftovers(folder string) {
	_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, _ error) error {
		if d == nil || d.Name() != "environment.yaml" {
			return nil
		}
		dir := filepath.Dir(path)
		destroy := exec.Command("juju", "destroy-environment", "-y", "--force", filepath.Base(dir))
		destroy.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(dir))
		if out, err := destroy.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "cannot clean up %s: %v\n%s", dir, err, out)
		}
		return filepath.SkipDir
	})
}

// stopLeftovers kills the servers and daemons that test charms started and a
// failed script left running; a script that passed has none.
func stopLeftovers(home string) {
	units := filepath.Join(home, "*", "machines", "*", "units", "*")
	for _, pattern := range []string{"redis/pid", "daemon.pid"} {
		files, _ := filepath.Glob(filepath.Join(units, pattern))
		for _, f := range files {
			data, _ := os.ReadFile(f)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// eventually DURATION REGEXP PROG ARG... runs the program again and again until
// its output matches (with !, until it does not), instead of sleeping; output is
// stdout and stderr together, the exit code does not matter. It fails after the
// duration.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: [!] eventually DURATION REGEXP PROG ARG...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		_ = ts.Exec(args[2], args[3:]...)
		if want.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("within %s, the output did not come to match %q (negated: %t)", limit, args[1], neg)
		}
	}
}

// sampleProvider FILE: builds the sample provider.
func sampleProvider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: provider FILE")
	}
	build := exec.Command("go", "build", "-o", ts.MkAbs(args[0]), ".")
	build.Dir = filepath.Join("..", "provision", "sample")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("cannot build the sample provider: %v\n%s", err, out)
	}
}

// zipCharm FILE DIR [NAME]: archives the charm in DIR, and adds a file of that
// name, whatever it is.
func zipCharm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: zipcharm FILE DIR [NAME]")
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	ts.Check(z.AddFS(os.DirFS(ts.MkAbs(args[1]))))
	if len(args) == 3 {
		w, err := z.Create(args[2])
		ts.Check(err)
		_, err = w.Write([]byte("hostile\n"))
		ts.Check(err)
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), packed.Bytes(), 0o600))
}

// condition answers [have:PROG] and [python:MODULE] in scripts. What is missing
// is told in one line, and is an error if BIJOU_TEST_REQUIRE names it.
func condition(cond string) (bool, error) {
	if module, ok := strings.CutPrefix(cond, "python:"); ok {
		return havePython(module)
	}
	prog, ok := strings.CutPrefix(cond, "have:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if _, err := exec.LookPath(prog); err == nil {
		return true, nil
	}
	return false, need.Lacks(prog, prog+" is not installed")
}
