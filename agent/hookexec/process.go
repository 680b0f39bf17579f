package hookexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/osutil"
)

// trampoline is a shell script that holds the hook's process back until it is recorded. It waits for a line
// on descriptor 3, and then becomes the hook under the same process id. If the agent dies first, the script
// reads the end of the pipe and exits. It unsets the variables that shells add to the environment.
const trampoline = `read -r go <&3 || exit 125; exec 3<&-; unset SHLVL OLDPWD; exec "$0" "$@"`

// process is one hook's process, held back or released.
type process struct {
	cmd  *exec.Cmd
	gate *os.File // a line written to it releases the process; closing it without a line ends the process
}

// startGated starts a process that waits at its gate until release, and only then runs argv. Its outputs are the
// pipes of out.
func startGated(s Spec, argv []string, out *outputReader) (*process, error) {
	gateReader, gate, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe: %w", err)
	}
	defer gateReader.Close()

	// The hook must not inherit descriptors that the agent itself has inherited. On kernels before Linux 5.11 this
	// fails, and the hook inherits them.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	cmd := exec.Command("/bin/sh", append([]string{"-c", trampoline}, argv...)...)
	cmd.Dir = s.CharmDir
	cmd.Env = s.Env
	cmd.Stdout = out.pipes[0].hookEnd
	cmd.Stderr = out.pipes[1].hookEnd
	cmd.ExtraFiles = []*os.File{gateReader}              // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that the hook has its own process group
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, fmt.Errorf("cannot start the hook: %w", err)
	}

	return &process{cmd: cmd, gate: gate}, nil
}

// release records the process and lets it run the hook, whose executable file is at path. If release returns an
// error, the process ends without running the hook.
func (p *process) release(s Spec, path string) error {
	defer p.gate.Close()
	s.faultPoint("after-spawn")
	if err := writeRecord(s.Record, s.ID, p.cmd.Process.Pid); err != nil {
		return err
	}
	s.faultPoint("after-note")

	// Linux does not run a file that a process has open for writing. Give that process a second to close it.
	osutil.AwaitNoWriter(path, time.Second)
	if _, err := p.gate.WriteString("\n"); err != nil {
		return fmt.Errorf("cannot release the hook: %w", err)
	}

	return nil
}

// wait waits for the end of the process. When interrupt is closed, it ends the process group with SIGTERM, and
// after TerminateTimeout with SIGKILL. When ctx is done, it uses SIGKILL at once. In both cases it returns an
// Outcome with Interrupted set, unless the process has just ended on its own.
func (p *process) wait(ctx context.Context, interrupt <-chan struct{}) Outcome {
	ended := make(chan error, 1) // buffered, so that the sender never blocks
	go func() { ended <- p.cmd.Wait() }()

	select {
	case err := <-ended:
		return newOutcome(err)
	case <-interrupt:
	case <-ctx.Done():
	}

	// If the process has just ended on its own, the other processes in its group are daemons. They must not be
	// killed.
	select {
	case err := <-ended:
		return newOutcome(err)
	default:
	}

	if ctx.Err() == nil {
		terminateGroup(ctx, p.cmd.Process.Pid)
	}
	// An error means that a process of the group cannot be killed. Nothing more can be done about it.
	_ = killGroup(p.cmd.Process.Pid)
	<-ended
	return Outcome{Interrupted: true}
}

// killTimeout is how long killGroup waits for the end of a process group.
const killTimeout = 30 * time.Second

// TerminateTimeout is the time that a hook has after SIGTERM before it gets SIGKILL.
const TerminateTimeout = 10 * time.Second

// terminateGroup sends SIGTERM to a process group, and waits until its processes have ended, ctx is done, or
// TerminateTimeout has passed.
func terminateGroup(ctx context.Context, pgid int) {
	// Kill fails if the group has ended. The loop then ends at once.
	_ = unix.Kill(-pgid, unix.SIGTERM)

	deadline := time.Now().Add(TerminateTimeout)
	for isGroupRunning(pgid) && ctx.Err() == nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
}

// killGroup kills a process group and waits until none of its processes is running, so that the next hook
// does not run at the same time as one of them. It returns an error if that takes longer than killTimeout.
func killGroup(pgid int) error {
	deadline := time.Now().Add(killTimeout)
	for isGroupRunning(pgid) {
		if err := unix.Kill(-pgid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill the hook's process group %d: %w", pgid, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot kill the hook's process group %d: a process of the group does not end", pgid)
		}
		time.Sleep(10 * time.Millisecond)
	}

	return nil
}

// isGroupRunning reports whether a process of the group is running. Unlike kill(2), it does not count zombies,
// which have ended and wait for their parent.
func isGroupRunning(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return unix.Kill(-pgid, 0) == nil // without /proc, zombies also count
	}

	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}

		st, err := osutil.ReadProcStat(pid)
		if err != nil || st.IsGone() {
			continue
		}
		if group := st.Field(5); group == strconv.Itoa(pgid) { // field 5 is the process group
			return true
		}
	}

	return false
}

// record identifies the process that runs a hook, so that the next agent finds the process after a crash.
// Process ids are reused, so the record also contains the process's start time. Start times count from the
// host's boot, so the record also contains the boot id.
type record struct {
	ID    string `json:"id"` // the run's id
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// recordSize is the size of each record's file, in bytes. The JSON is padded with blanks.
const recordSize = 256

// writeRecord records the hook's process. It overwrites the previous record in place, since a new file for
// each hook would cost more than all other work at the beginning of a hook. The record does not have to be
// durable, since no process survives a loss of power.
func writeRecord(path, id string, pid int) error {
	st, err := osutil.ReadProcStat(pid)
	if err != nil {
		return fmt.Errorf("cannot record the hook's process: %w", err)
	}

	data, _ := json.Marshal(record{ID: id, PID: pid, Start: st.Start(), Boot: osutil.BootID()}) // never fails
	padded := fmt.Appendf(nil, "%-*s\n", recordSize-1, data)
	if err := overwrite(path, padded); err != nil {
		return fmt.Errorf("cannot record the hook's process: %w", err)
	}

	return nil
}

// overwrite writes a record in place if the file has the size of a record. Otherwise, and if it cannot open the
// file, it replaces the file.
func overwrite(path string, data []byte) error {
	// Do not follow a symlink, and do not wait for the reader of a FIFO.
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == recordSize {
			_, err = f.WriteAt(data, 0)
			return err
		}
	}

	return osutil.WriteFile(path, data, 0o600)
}

// Reap kills the process group of the run with this id, if a dead agent has released the run and its first
// process is still running. It waits for the end of the group, and returns true. If the group does not end, it
// also returns an error. path is the path of the process's record.
//
// If the first process has ended, Reap does nothing, since the other processes are daemons. It also does
// nothing if the record is missing or belongs to a different run, since the run with this id was then never
// released. It returns an error if it cannot read or decode the record, since the process may then still be
// running.
func Reap(path, id string) (killed bool, err error) {
	r, err := readRecord(path)
	if err != nil {
		return false, err
	}
	if r.ID != id || !r.isRunning() {
		return false, nil
	}

	return true, killGroup(r.PID)
}

// readRecord reads the record of the last hook's process. If the file does not exist, it returns a zero record.
func readRecord(path string) (r record, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the record of the last hook: %w", err)
	}

	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("cannot find out whether the last hook is still running, because the record %q of its process is damaged: "+
			"end the hook's remaining processes, then remove the record: %w", path, err)
	}

	return r, nil
}

// StillRuns reports whether the process that was recorded last at path is still running, with or without its
// agent.
func StillRuns(path string) (bool, error) {
	r, err := readRecord(path)
	if err != nil {
		return false, err
	}
	return r.isRunning(), nil
}

// LastRun returns the id of the run that was recorded last at path. It returns an empty string if no run was
// recorded.
func LastRun(path string) (id string, err error) {
	r, err := readRecord(path)
	return r.ID, err
}

// isRunning reports whether the recorded process is running. A later process with the same process id does not
// count. For a zero record isRunning returns false.
func (r record) isRunning() bool {
	if r.Boot != osutil.BootID() {
		return false
	}
	st, err := osutil.ReadProcStat(r.PID)
	return err == nil && !st.IsGone() && st.Start() == r.Start
}
