package client_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"bijou/hookenv/client"
	"bijou/hookenv/client/wire"
)

func TestIsTool(t *testing.T) {
	for argv0, want := range map[string]bool{
		"relation-get":                true,
		"/var/lib/tools/relation-get": true,
		"unit-relations":              true,
		"action-fail":                 true,
		"relation":                    false,
		"relation-get-":               false,
		"relation-get relation-ids":   false,
		"juju":                        false,
		"":                            false,
		"/":                           false,
		os.Args[0]:                    false,
	} {
		t.Run(argv0, func(t *testing.T) {
			if got := client.IsTool(argv0); got != want {
				t.Errorf("IsTool(%q) = %v", argv0, got)
			}
		})
	}
}

// runAs runs the test binary under a different name.
func runAs(t *testing.T, env []string, argv ...string) (output string, exit int) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: argv, Env: append(env, "BIJOU_CLIENT_TEST=1", "GORACE=atexit_sleep_ms=0")}
	out, err := cmd.CombinedOutput()
	if missing := (*exec.ExitError)(nil); err != nil && !errors.As(err, &missing) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// reached is the text that the test binary prints if init returns.
const reached = "main was reached\n"

func TestMain(m *testing.M) {
	if os.Getenv("BIJOU_CLIENT_TEST") == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(client.Run(os.Args[1:]))
	}
	os.Stdout.WriteString(reached)
}

func TestInitTakesToolsWithAClientIDOnly(t *testing.T) {
	id, refused := []string{"JUJU_CLIENT_ID=x", "JUJU_SOCKET=/nonexistent"}, "ERROR cannot connect to /nonexistent: no such file or directory\n"
	for _, tt := range []struct {
		name string
		env  []string
		argv []string
		want string
	}{
		{"a tool with an id", id, []string{"relation-get"}, refused},
		{"a tool's path", id, []string{"/x/juju-log", "hi"}, refused},
		{"no tool", id, []string{"juju", "status"}, reached},
		{"no id", nil, []string{"relation-get"}, reached},
		{"an id in argv", nil, []string{"relation-get", "--client-id", "x", "--socket", "/nonexistent"}, refused},
		{"Python Juju's spelling", nil, []string{"relation-get", "--client_id=x", "--socket=/nonexistent"}, refused},
		{"an id behind --", nil, []string{"juju-log", "--", "--client-id", "x"}, reached},
		{"an option without its value", nil, []string{"juju-log", "--client-id"}, reached},
		{"a socket in argv wins", id, []string{"relation-get", "--socket=/nonexistent/too"}, strings.ReplaceAll(refused, "nonexistent", "nonexistent/too")},
		{"no socket", id[:1], []string{"relation-get"}, "ERROR cannot connect to the agent: JUJU_SOCKET is not set\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, exit := runAs(t, tt.env, tt.argv...)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if want := map[bool]int{true: 0, false: 1}[tt.want == reached]; exit != want {
				t.Errorf("exit code %d, want %d", exit, want)
			}
		})
	}
}

func TestRunWithoutAClientID(t *testing.T) {
	got, exit := runAs(t, nil, "bijou", "run")
	if exit != 1 || !strings.HasPrefix(got, "ERROR no client id: ") {
		t.Errorf("got %q, exit code %d", got, exit)
	}
}

func TestNames(t *testing.T) {
	names := strings.Fields(wire.ToolNames)
	for i, name := range names {
		if name == "" || strings.ContainsAny(name, " \t") || i > 0 && names[i-1] >= name {
			t.Errorf("%q is no name, or not in its place", name)
		}
	}
}
