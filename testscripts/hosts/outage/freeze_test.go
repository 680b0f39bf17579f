package outage

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/testscripts/kit/await"
)

// commands are the operator's running commands. No command starts while everything is frozen, because it
// could write to a file that is being copied.
type commands struct {
	beginning sync.Mutex // held while everything is frozen
	pids      map[int]bool
}

// run runs a command as cmd.Run does.
func (c *commands) run(cmd *exec.Cmd) error {
	if err := c.begin(cmd); err != nil {
		return err
	}
	err := cmd.Wait()
	c.beginning.Lock()
	defer c.beginning.Unlock()
	delete(c.pids, cmd.Process.Pid)
	return err
}

func (c *commands) begin(cmd *exec.Cmd) error {
	c.beginning.Lock()
	defer c.beginning.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.pids == nil {
		c.pids = map[int]bool{}
	}
	c.pids[cmd.Process.Pid] = true
	return nil
}

// freeze stops every process that has the state open or opens it. It returns a function that continues them.
// The end of the test also continues them.
func (w *world) freeze() (cont func()) {
	w.t.Helper()
	w.commands.beginning.Lock()
	stopped := map[int]bool{}
	cont = sync.OnceFunc(func() {
		for pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		w.commands.beginning.Unlock()
	})
	w.t.Cleanup(cont)
	await.Until(w.t, await.Poll{Limit: 2 * time.Minute, Pause: time.Millisecond}, "the processes stop", func() string {
		// Stopped processes start no others, so this search finds all processes.
		moving := moving(stopped)
		fresh := w.stop(stopped)
		return await.Unless(len(moving) == 0 && fresh == 0, "%d were found, and these move:\n%s", fresh, strings.Join(moving, "\n"))
	})
	return cont
}

// stop stops the processes that are not stopped yet, and returns their number. It leaves out a child
// that has not executed its program yet: it has all files of its parent, and the parent's thread would
// wait for it forever.
func (w *world) stop(stopped map[int]bool) (fresh int) {
	for _, pid := range slices.AppendSeq(w.users(), maps.Keys(w.commands.pids)) {
		if !stopped[pid] && !beforeProgram(pid) {
			stopped[pid] = true
			fresh++
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	return fresh
}

// users returns the processes that have the state open.
func (w *world) users() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.HasPrefix(to, w.StateFile()) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return slices.Compact(pids)
}

// moving describes the threads of the processes that are not stopped yet.
func moving(pids map[int]bool) (found []string) {
	for pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, thread := range threads {
			if s := stat(thread); s != nil && !strings.Contains("tTZX", s[0]) {
				waits, _ := os.ReadFile(thread + "/wchan")
				found = append(found, fmt.Sprintf("%s: %s %s", thread, s[0], waits))
			}
		}
	}
	return found
}

// beforeProgram reports whether a process was forked and has not executed its program yet (proc(5),
// field 9; PF_FORKNOEXEC in Linux's include/linux/sched.h).
func beforeProgram(pid int) bool {
	const forkNoExec = 0x40
	s := stat(fmt.Sprintf("/proc/%d", pid))
	if len(s) < 7 {
		return false
	}
	flags, _ := strconv.Atoi(s[6])
	return flags&forkNoExec != 0
}

// stat returns the fields of a process or thread from its state on (proc(5), from field 3). It returns
// none if the process is gone.
func stat(folder string) []string {
	data, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
}
