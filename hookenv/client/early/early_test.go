package early_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/need"
)

// program is a binary with only the thin client, linked like the released binary.
const program = "./testscripts/cmd/hooktool"

// TestNoCallIntoTheRuntime follows calls and jumps from entry through the disassembled binary (for amd64 the
// whole released binary). All must lead to functions of this package. The only exception is the jump to the
// place where Go programs begin.
func TestNoCallIntoTheRuntime(t *testing.T) {
	need.Whole(t)
	for arch, programs := range map[string][]string{"amd64": nil, "arm64": {program}} {
		t.Run(arch, func(t *testing.T) {
			binary := versions.Build(t, []string{"GOARCH=" + arch, "BIJOU_LDFLAGS=-s=false"}, programs...)
			out, err := exec.Command("go", "tool", "objdump", "-s", "^bijou/hookenv/client/early", binary).Output()
			if err != nil {
				t.Fatal(err)
			}
			begin := "_rt0_" + arch + "_linux"
			all := follow(parseCalls(t, out), "bijou/hookenv/client/early.entry.abi0")
			for from, to := range all {
				if strings.HasPrefix(to, "bijou/hookenv/client/early.") || to == begin && strings.Contains(from, "early.entry.abi0") {
					continue
				}
				t.Errorf("%s calls %s", from, to)
			}
			if len(all) < 15 {
				t.Errorf("only these calls were found: %v", all)
			}
		})
	}
}

// TestRuntimeIsFound checks that the rule refuses a call into the runtime.
func TestRuntimeIsFound(t *testing.T) {
	const text = "TEXT a.entry.abi0(SB) x.s\n\tx.s:1\t0x1\t00\tCALL a.f(SB)\nTEXT a.f(SB) x.go\n\tx.go:1\t0x1\t00\tCALL runtime.panicBounds(SB)\n\tx.go:2\t0x1\t00\tCALL AX\n"
	all := follow(parseCalls(t, []byte(text)), "a.entry.abi0")
	if fmt.Sprint(all) != "map[a.entry.abi0 (x.s:1):a.f a.f (x.go:1):runtime.panicBounds a.f (x.go:2):AX]" {
		t.Errorf("found %v", all)
	}
}

// call is one instruction that calls or jumps to another function.
type call struct{ at, to string }

var (
	function = regexp.MustCompile(`^TEXT (\S+)\(SB\)`)
	leaving  = regexp.MustCompile(`^\s+(\S+:\d+)\s+0x[0-9a-f]+\s+[0-9a-f]+\s+(?:CALL|JMP|J[A-Z]+|BL|B|B\.?[A-Z]{2}|CBN?Z|TBN?Z) (?:.*, )?(\S+?)(?:\(SB\))?\s*$`)
	within   = regexp.MustCompile(`^(0x[0-9a-f]+|-?\d+\(PC\))$`)
)

// parseCalls returns the calls of each function in a disassembly, and the jumps that leave a function.
func parseCalls(t *testing.T, disassembly []byte) map[string][]call {
	t.Helper()
	calls, name := map[string][]call{}, ""
	lines := bufio.NewScanner(bytes.NewReader(disassembly))
	for lines.Scan() {
		if f := function.FindStringSubmatch(lines.Text()); f != nil {
			name = f[1]
		} else if c := leaving.FindStringSubmatch(lines.Text()); c != nil && !within.MatchString(c[2]) {
			calls[name] = append(calls[name], call{c[1], c[2]})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return calls
}

// follow returns all reachable calls, as a map from the place of the call to its target.
func follow(calls map[string][]call, from string) map[string]string {
	found, open := map[string]string{}, []string{from}
	for seen := map[string]bool{}; len(open) > 0; {
		name := open[0]
		if open = open[1:]; seen[name] {
			continue
		}
		seen[name] = true
		for _, c := range calls[name] {
			found[fmt.Sprintf("%s (%s)", name, c.at)] = c.to
			if strings.HasPrefix(c.to, strings.SplitAfter(from, ".")[0]) {
				open = append(open, c.to)
			}
		}
	}
	return found
}

// maxCalls limits the system calls of a relation-get that prints a value. They include exec: arch_prctl
// twice, rt_sigprocmask, getcwd, fstat, socket, connect, sendto, read, write, exit_group. The start of Go's
// runtime alone makes 200.
const maxCalls = 12

func TestSystemCalls(t *testing.T) {
	need.Whole(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("skipped: system calls are counted on amd64")
	}
	binary := versions.Current(t)
	agent := startAgent(t, box("exit", "0", "stdout", "value\n"), "")
	cmd := agent.command(binary, "relation-get")
	close(agent.started)
	if n := countCalls(t, cmd); n > maxCalls {
		t.Errorf("%d system calls; at most %d", n, maxCalls)
	}
	other := startAgent(t, box("exit", "0", "stdout", "value\n"), "")
	cmd = other.command(binary, "relation-get")
	cmd.Env = append(cmd.Env, ordinary)
	close(other.started)
	if n := countCalls(t, cmd); n <= maxCalls {
		t.Errorf("%d system calls with Go's runtime: they are not counted", n)
	}
}

// countCalls traces a command to its end and counts its system calls.
func countCalls(t *testing.T, cmd *exec.Cmd) (calls int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		need.Skip(t, "ptrace", err)
	}
	stops := 0 // one before and one after each call of the first thread
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if status.Exited() {
			return (stops + 1) / 2
		}
		if status.Stopped() && status.StopSignal() == syscall.SIGTRAP {
			stops++
		}
		if err := syscall.PtraceSyscall(cmd.Process.Pid, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// maxResident limits the resident memory, in KiB.
const maxResident = 1024

func TestResident(t *testing.T) {
	need.Whole(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("skipped: other architectures have larger pages")
	}
	agent := startAgent(t, box("exit", "0", "stdout", "value\n"), "")
	if _, err := agent.run(agent.command(versions.Current(t), "relation-get")); err != nil {
		t.Fatal(err)
	}
	if agent.resident == 0 || agent.resident > maxResident {
		t.Errorf("%d KiB resident when the agent answers; at most %d", agent.resident, maxResident)
	}
}

func TestMain(m *testing.M) {
	if err := becomeOther(); err != nil {
		panic(err)
	}
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}
