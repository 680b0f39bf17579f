package author

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDescribeEnds(t *testing.T) {
	const charm = "/tmp/x/agents/unit-blog-0/charm/"
	tests := []struct{ name, log, want string }{
		{"a traceback", `INFO start: hook "start" begins
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `dispatch", line 4, in <module>
ERROR start:     f()
ERROR start:   File "` + charm + `src/blog.py", line 3, in f
ERROR start:     call()
ERROR start:   File "` + charm + `venv/ops/main.py", line 9, in call
ERROR start:   File "/usr/lib/python3/subprocess.py", line 7, in run
ERROR start: KeyError: 'x'
ERROR start: hook "start" failed after 1ms: exit code 1`,
			"blog/0 start failed at src/blog.py:3: KeyError: 'x' (exit code 1)"},
		{"a tool that a function calls", `INFO start: hook "start" begins
ERROR start: ERROR an earlier complaint
ERROR start: ERROR invalid status "runing"
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `dispatch", line 55, in <module>
ERROR start:     HOOKS[hook]()
ERROR start:   File "` + charm + `dispatch", line 47, in start
ERROR start:     call("status-set", "runing", "x")
ERROR start:   File "` + charm + `dispatch", line 11, in call
ERROR start:     subprocess.check_call([tool, *args])
ERROR start:   File "/usr/lib/python3.11/subprocess.py", line 413, in check_call
ERROR start:     raise CalledProcessError(retcode, cmd)
ERROR start: subprocess.CalledProcessError: Command '['status-set', 'runing', 'x']' returned non-zero exit status 2.
ERROR start: hook "start" failed after 1ms: exit code 1`,
			`blog/0 start failed at dispatch:47: subprocess.CalledProcessError: Command '['status-set', 'runing', 'x']' returned non-zero exit status 2: invalid status "runing" (exit code 1)`},
		{"an argument that a function passes on", `INFO start: hook "start" begins
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `dispatch", line 26, in start
ERROR start:     call("status-set", "active", ask("config-get", "none"))
ERROR start:   File "` + charm + `dispatch", line 11, in call
ERROR start:     subprocess.check_call([tool, *args])
ERROR start:   File "/usr/lib/python3.11/subprocess.py", line 1955, in _execute_child
ERROR start:     self.pid = _fork_exec(
ERROR start: TypeError: expected str, not NoneType
ERROR start: hook "start" failed after 1ms: exit code 1`,
			`blog/0 start failed at dispatch:26: TypeError: expected str, not NoneType (exit code 1)`},
		{"a function that calls no program", `INFO start: hook "start" begins
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `dispatch", line 26, in start
ERROR start:     f("status-set")
ERROR start:   File "` + charm + `dispatch", line 11, in f
ERROR start:     return {}[key]
ERROR start: KeyError: 'status-set'
ERROR start: hook "start" failed after 1ms: exit code 1`,
			`blog/0 start failed at dispatch:11: KeyError: 'status-set' (exit code 1)`},
		{"a complaint of a different program", `INFO start: hook "start" begins
ERROR start: ERROR invalid status "runing"
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `dispatch", line 26, in start
ERROR start:     run(["cat", "x"])
ERROR start:   File "/usr/lib/python3.11/subprocess.py", line 413, in check_call
ERROR start:     raise CalledProcessError(retcode, cmd)
ERROR start: subprocess.CalledProcessError: Command '['cat', 'x']' returned non-zero exit status 1.
ERROR start: hook "start" failed after 1ms: exit code 1`,
			`blog/0 start failed at dispatch:26: subprocess.CalledProcessError: Command '['cat', 'x']' returned non-zero exit status 1. (exit code 1)`},
		{"a tool, and traced", `INFO start: hook "start" begins
ERROR start: ERROR no such option
ERROR start: hook "start" failed after 1ms: exit code 8`,
			"blog/0 start failed at hooks/start:7: config-get x: no such option (exit code 8)"},
		{"bash", `INFO start: hook "start" begins
ERROR start: ` + charm + `hooks/start: line 3: nosuch: command not found
ERROR start: hook "start" failed after 1ms: exit code 127`,
			"blog/0 start failed at hooks/start:3: nosuch: command not found (exit code 127)"},
		{"a program of a source tree", `INFO start: hook "start" begins
ERROR start: Traceback (most recent call last):
ERROR start:   File "` + charm + `./src/charm.py", line 3, in <module>
ERROR start:     import none
ERROR start: ModuleNotFoundError: none
ERROR start: hook "start" failed after 1ms: exit code 1`,
			"blog/0 start failed at src/charm.py:3: ModuleNotFoundError: none (exit code 1)"},
		{"sh", `INFO start: hook "start" begins
ERROR start: ` + charm + `hooks/start: 3: nosuch: not found
ERROR start: hook "start" failed after 1ms: exit code 127`,
			"blog/0 start failed at hooks/start:3: nosuch: not found (exit code 127)"},
		{"nothing printed", `INFO start: hook "start" begins
ERROR start: hook "start" failed after 1ms: exit code 1`,
			"blog/0 start failed: exit code 1"},
		{"a message without a place", `INFO start: hook "start" begins
ERROR start: cannot find the disk
INFO start: giving up
ERROR start: hook "start" failed after 1ms: exit code 1`,
			"blog/0 start failed: exit code 1: cannot find the disk"},
		{"nothing printed, and traced", `INFO start: hook "start" begins
ERROR start: hook "start" failed after 1ms: exit code 9`,
			"blog/0 start failed at hooks/start:7: false (exit code 9)"},
		{"a message without a place, and traced", `INFO start: hook "start" begins
ERROR start: cannot find the disk
ERROR start: hook "start" failed after 1ms: exit code 9`,
			"blog/0 start failed at hooks/start:7: false: cannot find the disk (exit code 9)"},
		{"what ended well, and what runs", `INFO install: hook "install" begins
INFO install: hook "install" is done after 3ms
INFO start: hook "start" begins
INFO start: hook "start" begins`,
			"blog/0 start has been running for 2.5s"},
	}
	trace := func(unit, hook, failure string) (place, command string) {
		switch failure {
		case "exit code 8":
			return "hooks/" + hook + ":7", "config-get x"
		case "exit code 9":
			return "hooks/" + hook + ":7", "false"
		}
		return "", ""
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for line := range strings.Lines(tt.log) {
				lines = append(lines, "2026-01-02 03:04:05.000 blog/0 "+line)
			}

			now := time.Date(2026, 1, 2, 3, 4, 7, 500e6, time.Local)
			if diff := cmp.Diff(tt.want, strings.Join(describeEnds(lines, []string{"config-get", "status-set"}, now, trace), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWithout checks that a hook's equal lines stay apart, and that only the lines of both logs are left out.
func TestWithout(t *testing.T) {
	got := without([]string{"a", "a", "b", "c", "c"}, []string{"x", "a", "b"})
	if diff := cmp.Diff([]string{"a", "c", "c"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestShellOptions checks which scripts count as shell scripts, and the options that they run with.
func TestShellOptions(t *testing.T) {
	for first, want := range map[string]string{
		"#!/bin/sh":              "[] true",
		"#!/bin/bash -eu":        "[-eu] true",
		"#! /usr/bin/env bash":   "[] true",
		"#!/usr/bin/env python3": "[] false",
		"#!/usr/bin/python3 -E":  "[] false",
		"\x7fELF":                "[] false",
		"#!":                     "[] false",
		"":                       "[] false",
	} {
		t.Run(first, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "start")
			if err := os.WriteFile(file, []byte(first+"\nexit 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			options, isShell := shellOptions(file)
			if got := fmt.Sprint(options, isShell); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestAddTrace checks that a script with a trace runs as before, and that the trace has the script's own lines.
func TestAddTrace(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}

	for name, tt := range map[string]struct{ script, output, want string }{
		"a command":      {"#!/bin/bash\nset -e\necho x\nfalse\n", "x\n", "hooks/h:4 false"},
		"a comment":      {"#!/bin/bash\n# Why.\nexit 1\n", "", "hooks/h:3 exit 1"},
		"a trace inside": {"#!/bin/bash\nx=1; [ $x = 2 ]", "", "hooks/h:2 '[' 1 = 2 ']'"},
		"a function":     {"#!/bin/bash\nf() {\n  return 1\n}\nf\n", "", "hooks/h:3 return 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "charm")
			file := filepath.Join(dir, "hooks", "h")
			trace := filepath.Join(t.TempDir(), "trace")
			if err := writeProgram(file, string(addTrace([]byte(tt.script), []string{bash}, trace))); err != nil {
				t.Fatal(err)
			}

			out, err := exec.Command(file).CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || string(out) != tt.output {
				t.Errorf("it prints %q and ends with %v", out, err)
			}
			text, _ := os.ReadFile(trace)
			place, command := lastTraced(string(text))
			if got := place + " " + command; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
