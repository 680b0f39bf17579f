package juju

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/state/logs"
)

func TestBootstrapAndDestroy(t *testing.T) {
	w := newTestEnv(t)
	w.mustFail(1, "hint: to create a model: juju bootstrap", "status")
	w.mustRun("bootstrap", "--config", "automatically-retry-hooks=false")
	w.mustFail(1, `"default"`, "bootstrap")
	if got := w.mustRun("get-environment", "automatically-retry-hooks"); got != "false\n" {
		t.Errorf("value %q", got)
	}
	w.mustRun("bootstrap", "-e", "two")
	if got := w.mustRun("environments"); !regexp.MustCompile(`^MODEL +CLOUD +STATUS +MACHINES +UNITS +STORE\ndefault +local +available +1 +0 +sqlite:.*/default/.*\ntwo \* +local +available +1 +0 +sqlite:.*/two/.*\n$`).MatchString(got) {
		t.Errorf("environments %q", got)
	}
	w.mustRun("switch", "default")
	if got := w.mustRun("switch"); got != "default\n" {
		t.Errorf("current %q", got)
	}
	if code, _, errs := w.run("defaul\n", "destroy-environment"); code != 1 || !strings.Contains(errs, "nothing was destroyed") {
		t.Errorf("a wrong answer: exit %d, %q", code, errs)
	}
	if code, _, errs := w.run("default\n", "destroy-environment"); code != 0 {
		t.Errorf("the right answer: exit %d, %q", code, errs)
	}
	w.mustRun("destroy-environment", "-y", "two")
	if entries, err := os.ReadDir(w.home.Dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if len(w.backgrounds) != 0 || len(w.swept) != 2 || !strings.HasPrefix(w.swept[0], "JUJU_ENV_UUID=") {
		t.Errorf("running %v, swept %v", w.backgrounds, w.swept)
	}
}

func TestBootstrapRefuses(t *testing.T) {
	w := newTestEnv(t)
	for _, name := range []string{"../x", "a\nb", "current", ""} {
		if name != "" {
			w.mustFail(2, "cannot name a model", "bootstrap", "-e", name)
		}
	}
	w.mustFail(2, "no provider", "bootstrap", "--provider", "ec2")
	w.mustFail(1, "cannot reach a state in a file", "bootstrap", "--provider", "far")
	w.mustFail(2, "memory", "bootstrap", "--state", "mem:x")
	w.mustFail(2, "zookeeper", "bootstrap", "--state", "zookeeper://h")
	w.mustFail(2, "nosuch", "bootstrap", "--config", "nosuch=1")
	w.mustFail(2, "series", "bootstrap", "--default-series", "No Series")
	if entries, _ := os.ReadDir(w.home.Dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestBootstrapLeavesForeignStoresAlone(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	store := filepath.Join(w.home.Dir, "default", "state", "state.db")
	w.mustFail(1, "already", "bootstrap", "-e", "other", "--state", "sqlite:"+store)
	w.mustFail(2, "nosuch", "bootstrap", "-e", "other", "--state", "sqlite:"+store, "--config", "nosuch=1")
	w.mustRun("status")
}

func TestBootstrapTakesAwayWhatFailed(t *testing.T) {
	w := newTestEnv(t)
	store := filepath.Join(t.TempDir(), "my.db")
	w.startErr = errors.New("no room for a process")
	w.mustFail(1, "no room", "bootstrap", "--state", "sqlite:"+store)
	for _, path := range []string{store, filepath.Join(w.home.Dir, "default")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	w.startErr, w.exitsAtStart = nil, true
	w.mustFail(1, "cannot find a pen", "bootstrap")
	w.exitsAtStart = false
	w.mustRun("bootstrap", "--state", "sqlite:"+store)
	w.mustRun("destroy-environment", "-y")
	if files, _ := filepath.Glob(store + "*"); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestBootstrapGoesOverWhatWasCutOff(t *testing.T) {
	w := newTestEnv(t)
	left := filepath.Join(w.home.Dir, "default", "state")
	if err := errors.Join(os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(left, "state.db"), []byte("torn"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.mustRun("bootstrap")
}

func TestStart(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	if _, _, errs := w.run("", "start"); !strings.Contains(errs, "already runs, with process id 1234") {
		t.Errorf("said %q", errs)
	}
	dir := filepath.Join(w.home.Dir, "default", "machines", "0")
	if err := w.parts.Processes.Halt(t.Context(), dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, errs := w.run("", "status"); !strings.Contains(errs, "hint: start it again with: juju start -e default") {
		t.Errorf("said %q", errs)
	}
	w.mustRun("start")
	if w.backgrounds[dir] == nil {
		t.Error("it was not started")
	}
}

func TestDeployRefuses(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	trivial := w.writeCharm("trivial", "provides: {server: {interface: i}}\n")
	w.mustFail(1, "no such directory", "deploy", "no/thing-here")
	w.mustFail(1, "nothing-here", "deploy", "./nothing-here")
	w.mustFail(2, "bad name", "deploy", trivial, "bad name")
	w.mustFail(2, "0 units", "deploy", trivial, "-n", "0")
	w.mustFail(2, "dialect", "deploy", trivial, "--hook-dialect", "welsh")
	w.mustFail(1, "machine", "deploy", trivial, "--to", "77")
	if status := w.mustRun("status"); strings.Contains(status, "trivial") {
		t.Errorf("a refused deploy left something:\n%s", status)
	}
	options := filepath.Join(t.TempDir(), "o.yaml")
	if err := os.WriteFile(options, []byte("trivial: {nosuch: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustFail(1, "nosuch", "deploy", trivial, "--config", options)
	sub := w.writeCharm("sub", "subordinate: true\nrequires: {p: {interface: juju-info, scope: container}}\n")
	w.mustFail(1, "subordinate", "deploy", sub, "-n", "2")
}

func TestDeployOfOtherContentTakesAnotherRevision(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	trivial := w.writeCharm("trivial", "")
	w.mustRun("deploy", trivial, "a")
	w.mustRun("deploy", trivial, "b")
	if err := os.WriteFile(filepath.Join(trivial, "new"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustRun("deploy", trivial, "c")
	status := w.mustRun("status", "--wide")
	for service, url := range map[string]string{"a": "trivial-0", "b": "trivial-0", "c": "trivial-1"} {
		if row := regexp.MustCompile(`(?m)^` + service + ` +local:noble/` + url + ` `); !row.MatchString(status) {
			t.Errorf("service %s has not charm %s:\n%s", service, url, status)
		}
	}
}

func TestRoad(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	server, client := w.writeCharm("server", "provides: {db: {interface: i}}\n"), w.writeCharm("client", "requires: {db: {interface: i}}\n")
	w.mustRun("deploy", server, "-n", "2")
	w.mustRun("deploy", "--repository", filepath.Dir(client), "client", "blog")
	if got := w.mustRun("add-unit", "server", "--to", "new"); got != "server/2\n" {
		t.Errorf("unit %q", got)
	}
	if got := w.mustRun("add-relation", "server", "blog"); got != "relation-0: server:db blog:db\n" {
		t.Errorf("relation %q", got)
	}
	w.mustFail(1, "server", "add-relation", "server", "blog")
	value := filepath.Join(t.TempDir(), "title")
	if err := os.WriteFile(value, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustRun("set", "blog", "title=@"+value)
	if got := w.mustRun("get", "blog"); !strings.Contains(got, "from a file") || strings.Contains(got, "default: true") {
		t.Errorf("options:\n%s", got)
	}
	w.mustFail(2, "key=value", "set", "blog", "title")
	w.mustFail(2, "twice", "set", "blog", "title=a", "title=b")
	w.mustFail(1, "nosuch", "set", "blog", "nosuch=1")
	if got := w.mustRun("status", "--format", "json", "blog"); !strings.Contains(got, `"blog/0":{"state":"pending"`) || strings.Contains(got, `"server/0":{"state":"pending"`) {
		t.Errorf("status %s", got)
	}
	if got := w.mustRun("machines"); !strings.Contains(got, "1        pending") {
		t.Errorf("machines:\n%s", got)
	}
	if got := w.mustRun("resolved", "blog/0"); got != "unit \"blog/0\" is already running\n" {
		t.Errorf("resolved %q", got)
	}
	w.mustFail(1, "Relation not found", "resolved", "blog/0", "nosuch")
	w.mustFail(1, "nosuch/0", "remove-unit", "nosuch/0")
	// No agent knows the unit yet, so it is removed immediately, with the machine that was requested for it.
	w.mustRun("remove-unit", "server/2")
	w.mustFail(1, "not found", "destroy-machine", "1")
	w.mustRun("destroy-relation", "server", "blog")
	w.mustFail(1, "not found", "destroy-relation", "relation-0")
	w.mustRun("destroy-service", "blog", "server")
	if got := w.mustRun("status", "--wide"); !strings.Contains(got, "pending (dying)") || strings.Contains(got, "relation-0") {
		t.Errorf("status:\n%s", got)
	}
}

func TestDebugLog(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	b := w.backgrounds[filepath.Join(w.home.Dir, "default", "machines", "0")]
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for i, level := range []string{"INFO", "ERROR", "DEBUG"} {
		line := logs.Line{Time: at.Add(time.Duration(i) * time.Second), Level: level, Hook: "install", Message: "m" + level}
		if err := logs.Append(t.Context(), b.state, "a/0", []logs.Line{line}); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.mustRun("debug-log", "--level", "info", "-n", "1"); got != "2026-01-02 03:04:06.000 a/0 ERROR install: mERROR\n" {
		t.Errorf("log %q", got)
	}
	if got := w.mustRun("debug-log", "-n", "0"); strings.Count(got, "\n") != 3 {
		t.Errorf("log %q", got)
	}
	if got := w.mustRun("debug-log", "--unit", "0"); got != "" {
		t.Errorf("log %q", got)
	}
	w.mustFail(1, `matches "b/0"`, "debug-log", "--unit", "b/0")
	for _, args := range [][]string{
		{"--include", "unit-a-0", "--ms", "--date", "--replay", "--no-tail"}, {"-i", "a/0", "-l", "DEBUG"}, {"a"}, {"--limit", "3"}, {"--tail", "3", "a/0"},
	} {
		if got := w.mustRun(append([]string{"debug-log"}, args...)...); strings.Count(got, "\n") != 3 {
			t.Errorf("%q: log %q", args, got)
		}
	}
	if got := w.mustRun("debug-log", "--color", "--level", "ERROR"); got != "2026-01-02 03:04:06.000 a/0 \x1b[31mERROR\x1b[0m install: mERROR\n" {
		t.Errorf("log %q", got)
	}
	if _, _, errs := w.run("", "debug-log", "--include-module", "unit"); errs != "note: --include-module has no effect: lines have a unit and a hook, but no module\n" {
		t.Errorf("noted %q", errs)
	}
	w.mustFail(2, "noisy", "debug-log", "--level", "noisy")
}

// TestStartBesideAnother checks that juju start does not start machine 0 a second time while another process
// is about to run it, for example a process that switches binaries on a busy host. If that process ends, juju
// start starts machine 0.
func TestStartBesideAnother(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	e, err := w.home.Environment(defaultEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	agents := testAgents{w}

	for _, tt := range []struct {
		name string
		then func() // called after the process was checked a few times
		want string
	}{
		{"it comes up", func() {
			if _, err := agents.Start(e); err != nil {
				t.Error(err)
			}
		}, "already runs"},
		{"it ends", func() {}, "machine 0 is running"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.mustRun("stop")
			looks := 0
			w.about = func() bool {
				if looks++; looks == 5 {
					tt.then()
				}
				return looks < 5
			}
			code, _, said := w.run("", "start")
			w.about = nil
			if code != 0 || looks < 5 || !strings.Contains(said, tt.want) {
				t.Errorf("exit %d after %d looks: %s", code, looks, said)
			}
		})
	}
}

// TestStartSaysHowFarItIs checks the output of juju start about a process that has not yet locked its
// directory or announced itself.
func TestStartSaysHowFarItIs(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("stop")
	e, err := w.home.Environment(defaultEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{ctx: t.Context(), parts: w.parts}
	for _, tt := range []struct {
		pid   int
		lives bool
		want  string
		hint  bool
	}{
		{0, true, "the process has not yet locked the machine's directory", true},
		{7, true, "process 7 runs, but has not yet announced machine 0 in the state", true},
		{0, false, "the process has not yet locked the machine's directory", false},
	} {
		var said strings.Builder
		console.Report(&said, o.explainStart(e, tt.pid, tt.lives))
		if !strings.Contains(said.String(), tt.want) || strings.Contains(said.String(), "hint: it may still start") != tt.hint {
			t.Errorf("%+v: %s", tt, said.String())
		}
	}
}
