package charms_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/need"
)

// record is a line of the recorder's log.
type record struct {
	Event, Hook, Unit, Remote, Members, Relation, ID, Client string
	PID                                                      int
	Exit                                                     *int
	Listed                                                   []string
	Settings, Own                                            map[string]string
	Config                                                   map[string]any
	Revision                                                 int
}

func (p *play) records(unit string) []record {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.unitDir(unit), "recorder.log"))
	p.check(err)
	var all []record
	for line := range strings.Lines(string(data)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("%v in line %q", err, line)
		}
		all = append(all, r)
	}
	return all
}

func TestRecorderNotesWhatItSaw(t *testing.T) {
	need.Whole(t)
	p := newPlay(t)
	p.configure("rec", map[string]any{"set": `a=1 b="q"`, "print": 2, "big": 0})
	p.deploy("rec/0", "recorder")
	p.enter("rec/0", "ring:0")
	p.deploy("rec/1", "recorder")
	p.enter("rec/1", "ring:0")

	var hooks []string
	for _, r := range p.records("rec/0") {
		hooks = append(hooks, r.Event+" "+r.Hook)
		if r.Event == "end" && (r.Exit == nil || *r.Exit != 0) {
			t.Errorf("record without exit 0: %+v", r)
		}
	}
	var want []string
	for _, hook := range []string{"install", "config-changed", "start", "ring-relation-joined", "ring-relation-changed"} {
		want = append(want, "begin "+hook, "end "+hook)
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	all := p.records("rec/0")
	got := all[len(all)-2]
	got.PID = 0
	settings := map[string]string{"private-address": "127.0.0.1", "a": "1", "b": `"q"`}
	wantLast := record{
		Event: "begin", Hook: "ring-relation-changed", Unit: "rec/0", Remote: "rec/1", Members: "rec/1",
		Relation: "ring", ID: "ring:0", Client: "id-ring-relation-changed", Listed: []string{"rec/1"},
		Settings: settings, Own: settings, Revision: 1,
		Config: map[string]any{"set": `a=1 b="q"`, "print": 2.0, "big": 0.0},
	}
	if diff := cmp.Diff(wantLast, got); diff != "" {
		t.Errorf("last record (-want +got):\n%s", diff)
	}
}

func TestRecorderDoesAsItIsTold(t *testing.T) {
	need.Whole(t)
	p := newPlay(t)
	p.deploy("rec/0", "recorder")
	p.enter("rec/0", "ring:0")
	control := filepath.Join(p.unitDir("rec/0"), "control")
	p.check(os.Mkdir(control, 0o755))
	tell := func(name, content string) {
		p.check(os.WriteFile(filepath.Join(control, name), []byte(content), 0o644))
	}

	tell("fail-start", "7")
	if _, err := p.try("rec/0", "start"); err == nil || err.(*exec.ExitError).ExitCode() != 7 {
		t.Errorf("start told to fail with 7: %v", err)
	}
	all := p.records("rec/0")
	if last := all[len(all)-1]; last.Exit == nil || *last.Exit != 7 {
		t.Errorf("the record says %+v", last)
	}

	tell("print-stop", "3")
	out, err := p.try("rec/0", "stop")
	if want := "stdout 1\nstderr 1\nstdout 2\nstderr 2\nstdout 3\nstderr 3\n"; err != nil || out != want {
		t.Errorf("stop printed %q, %v", out, err)
	}

	tell("big-config-changed", "100000")
	tell("set-config-changed", "k=two words\nl=2")
	p.run("rec/0", "config-changed")
	got := p.world().Relations["ring:0"].Settings["rec/0"]
	if len(got["big"]) != 100000 || got["k"] != "two words" || got["l"] != "2" {
		t.Errorf("set: big of %d bytes, k=%q, l=%q", len(got["big"]), got["k"], got["l"])
	}

	tell("hold-install", "")
	tell("go-install", "")
	tell("run-install", "echo from $hook")
	tell("daemon-install", "")
	out, err = p.try("rec/0", "install")
	if out != "from install\n" || err != nil {
		t.Errorf("install printed %q, %v", out, err)
	}
	data, err := os.ReadFile(filepath.Join(p.unitDir("rec/0"), "daemon.pid"))
	p.check(err)
	var pid int
	_, err = fmt.Sscan(string(data), &pid)
	p.check(err)
	daemon, err := os.FindProcess(pid)
	p.check(err)
	if err := daemon.Kill(); err != nil {
		t.Errorf("the daemon did not outlive its hook: %v", err)
	}
}
