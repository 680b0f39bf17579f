package juju

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestCutCommand(t *testing.T) {
	for line, want := range map[string]string{
		"run u/0 -- ls -l":             "run u/0|ls -l",
		"-e env exec --all -- ls -- x": "-e env exec --all|ls -- x",
		"--environment=e run -- ls":    "--environment=e run|ls",
		"run u/0 ls":                   "run u/0 ls|",
		"exec --unit u/0 ls -l":        "exec --unit u/0|ls -l",
		"exec -a web --format json ls": "exec -a web --format json|ls",
		"exec u/0 u/1 ls -l -- x":      "exec u/0 u/1|ls -l -- x",
		"exec -it u/0 sh -c true":      "exec -it u/0|sh -c true",
		"exec web sh":                  "exec web|sh",
		"exec web -- sh":               "exec web|sh",
		"exec --machine=0 uptime":      "exec --machine=0|uptime",
		"exec --wait 5s --all uptime":  "exec --wait 5s --all|uptime",
		"exec u/0":                     "exec u/0|",
		"run u/0 --":                   "run u/0|",
		"do ls -- run":                 "do ls -- run|",
		"-e run set x -- -y=1":         "-e run set x -- -y=1|",
		"":                             "|",

		"exec web/0 hostname -f":             "exec web/0|hostname -f",
		"exec web/0 web/1 hostname":          "exec web/0 web/1|hostname",
		"exec --unit web/0 ls -a":            "exec --unit web/0|ls -a",
		"exec hostname -f":                   "exec hostname|-f",
		"exec df -h":                         "exec df|-h",
		"exec uname -a":                      "exec uname|-a",
		"exec web --wait 5s ls":              "exec web --wait 5s|ls",
		"exec web-0 -- ls":                   "exec web-0|ls",
		"exec web":                           "exec web|",
		"--wait --all exec uptime":           "--all exec uptime|",
		"--wait -m prod exec web/0 ls -a":    "-m prod exec web/0|ls -a",
		"exec -e A=1 --env B=2 web/0 env":    "exec web/0|export A=1 B=2; env",
		"exec -w /tmp web/0 -- pwd -P":       "exec web/0|cd /tmp || exit; pwd -P",
		"exec -e prod web/0 -- ls":           "exec -e prod web/0|ls",
		"exec web/0 -- env -e A=1":           "exec web/0|env -e A=1",
		"run -e A=1 web/0 env":               "exec web/0|export A=1; env",
		"run web/0 backup":                   "run web/0 backup|",
		"run web/0 backup --wait":            "run web/0 backup|",
		"run --wait 5s web/0 backup":         "run --wait 5s web/0 backup|",
		"run --wait --format json web/0 act": "run --format json web/0 act|",
		"run web/0 -- x --wait":              "run web/0|x --wait",
		"status web":                         "status web|",
	} {
		t.Run(line, func(t *testing.T) {
			own, command, err := cutCommand(strings.Fields(line))
			if got := strings.Join(own, " ") + "|" + strings.Join(command, " "); got != want || err != nil {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
		})
	}
}

// TestAsShellRuns checks that a shell runs words that are not a program, as it runs all commands in Juju.
func TestAsShellRuns(t *testing.T) {
	for line, want := range map[string]string{
		"exit 3":      "exit 3",
		"FOO=bar env": "FOO=bar env",
		"cd /tmp":     "cd /tmp",
		"ls -l":       "ls|-l",
		"exit":        "exit",
	} {
		t.Run(line, func(t *testing.T) {
			if got := strings.Join(asShellRuns(strings.Fields(line)), "|"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestTargetsOfRun checks that juju run runs the command on the other units if the agent of one unit is down.
// If one of the units does not exist, it does not run the command. It waits for a unit that has not started
// yet.
func TestTargetsOfRun(t *testing.T) {
	st := statetest.New(t)
	units := statetest.AddService(t, st, statetest.MySQL(), 3)
	for _, u := range units[:2] {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetUnitCharm(u.Name, "local:jammy/mysql-3") })
	}
	statetest.Session(t, st, state.UnitAgent("mysql/0"))
	for _, tc := range []struct {
		cmd         execCmd
		units, down []string
		err         string
	}{
		{execCmd{All: true}, []string{"mysql/0", "mysql/2"}, []string{`cannot run on unit "mysql/1": its agent is down`}, ""},
		{execCmd{Units: []string{"mysql/0"}, Unit: []string{"mysql/0"}, Service: []string{"mysql"}}, []string{"mysql/0", "mysql/2"},
			[]string{`cannot run on unit "mysql/1": its agent is down`}, ""},
		{execCmd{Units: []string{"mysql/2"}}, []string{"mysql/2"}, nil, ""},
		{execCmd{Units: []string{"mysql/1"}}, nil, nil, "its agent is down"},
		{execCmd{Units: []string{"mysql/0", "mysql/7", "mysql/8"}}, nil, nil, "unit \"mysql/7\" not found\nerror: unit \"mysql/8\" not found"},
		{execCmd{Service: []string{"nosuch"}}, nil, nil, "nosuch"},
		{execCmd{}, nil, nil, "no unit given"},
	} {
		to, err := tc.cmd.findTargets(&operator{ctx: t.Context()}, st)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%+v: error %v", tc.cmd, err)
			}
			continue
		}
		var down []string
		if len(to.down) > 0 {
			down = strings.Split(errors.Join(to.down...).Error(), "\n")
		}
		if diff := cmp.Diff([][]string{tc.units, tc.down}, [][]string{to.units, down}); err != nil || diff != "" {
			t.Errorf("%+v: %v (-want +got):\n%s", tc.cmd, err, diff)
		}
	}
}

// TestBackgroundExecOfDownUnit checks that juju exec --background names the units on which it cannot run the command.
func TestBackgroundExecOfDownUnit(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("deploy", w.writeCharm("trivial", ""), "-n", "2")
	e, err := w.home.Environment("default")
	if err != nil {
		t.Fatal(err)
	}
	st, err := state.Open(t.Context(), e.State)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for _, unit := range []string{"trivial/0", "trivial/1"} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetUnitCharm(unit, "local:noble/trivial-0") })
	}
	statetest.Session(t, st, state.UnitAgent("trivial/0"))

	code, _, stderr := w.run("", "exec", "--all", "--background", "--", "true")
	if code != 1 || !strings.Contains(stderr, `cannot run on unit "trivial/1": its agent is down`) {
		t.Errorf("exit code %d, and stderr %q", code, stderr)
	}
}
