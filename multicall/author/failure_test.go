package author

import (
	"fmt"
	"os"
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
		{"bash", `INFO start: hook "start" begins
ERROR start: ` + charm + `hooks/start: line 3: nosuch: command not found
ERROR start: hook "start" failed after 1ms: exit code 127`,
			"blog/0 start failed at hooks/start:3: nosuch: command not found (exit code 127)"},
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
		{"what ended well, and what runs", `INFO install: hook "install" begins
INFO install: hook "install" is done after 3ms
INFO start: hook "start" begins
INFO start: hook "start" begins`,
			"blog/0 start has run for 2.5s"},
	}
	trace := func(unit, hook, failure string) (place, command string) {
		if failure != "exit code 9" {
			return "", ""
		}
		return "hooks/" + hook + ":7", "false"
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for line := range strings.Lines(tt.log) {
				lines = append(lines, "2026-01-02 03:04:05.000 blog/0 "+line)
			}

			now := time.Date(2026, 1, 2, 3, 4, 7, 500e6, time.Local)
			if diff := cmp.Diff(tt.want, strings.Join(describeEnds(lines, now, trace), "\n")); diff != "" {
				t.Error(diff)
			}
		})
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
