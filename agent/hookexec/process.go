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

// trampoline holds the hook's process back until it is recorded: it waits for a line on descriptor
// 3, and then becomes the hook under the same process id. If the agent dies first it reads the end
// of the pipe and exits instead. A shell that counts its level must not leave a trace of itself.
const trampoline = `read -r go <&3 || exit 125; exec 3<&-; unset SHLVL OLDPWD; exec "$0" "$@"`

// process is one hook's process, held back or released.
type process struct {
	cmd  *exec.Cmd
	gate *os.File // a line releases the process, closing ends it
}

// startHeld starts a shell that waits for a line from the returned process's gate before it runs argv. So the
// process can be recorded before the hook begins.
func startHeld(s Spec, argv []string, out *outputReader) (*process, error) {
	wait, gate, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer wait.Close()

	// Whoever started the agent may have left descriptors open in it.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	cmd := exec.Command("/bin/sh", append([]string{"-c", trampoline}, argv...)...)
	cmd.Dir = s.CharmDir
	cmd.Env = s.Env
	cmd.Stdout = out.pipes[0].hookEnd
	cmd.Stderr = out.pipes[1].hookEnd
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, fmt.Errorf("cannot start the hook: %w", err)
	}

	return &process{cmd: cmd, gate: gate}, nil
}

// release records the process before it lets it run. If it cannot be recorded, the process
// ends without having run the hook.
func (p *process) release(s Spec, path string) error {
	defer p.gate.Close()
	s.faultPoint("after-spawn")
	if err := writeRecord(s.Record, s.ID, p.cmd.Process.Pid); err != nil {
		return err
	}

	s.faultPoint("after-note")
	osutil.AwaitNoWriter(path, time.Second)
	if _, err := p.gate.WriteString("\n"); err != nil {
		return fmt.Errorf("cannot let the hook go: %w", err)
	}

	return nil
}

// wait waits for the process's end. Once interrupt or ctx is done it ends the process's group.
func (p *process) wait(ctx context.Context, interrupt <-chan struct{}) Outcome {
	ended := make(chan error, 1) // buffered: the sender never waits for us
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		return newOutcome(err)
	case <-interrupt:
	case <-ctx.Done():
	}

	select {
	case err := <-ended: // by itself, and whom it left in its group is a daemon
		return newOutcome(err)
	default:
	}

	if ctx.Err() == nil {
		terminateGroup(ctx, p.cmd.Process.Pid)
	}
	_ = killGroup(p.cmd.Process.Pid)
	<-ended
	return Outcome{Interrupted: true}
}

// killTimeout is how long killGroup waits for a group's end.
const killTimeout = 30 * time.Second

// TerminateTimeout is how long a hook that is told to end may take to do so.
const TerminateTimeout = 10 * time.Second

func terminateGroup(ctx context.Context, pgid int) {
	_ = unix.Kill(-pgid, unix.SIGTERM)
	for end := time.Now().Add(TerminateTimeout); isGroupRunning(pgid) && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// killGroup kills a process group and waits until none of its processes runs, so that the next hook does
// not meet them. It returns an error if that takes longer than killTimeout.
func killGroup(pgid int) error {
	for end := time.Now().Add(killTimeout); isGroupRunning(pgid); time.Sleep(10 * time.Millisecond) {
		if err := unix.Kill(-pgid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot kill the hook's process group %d: %w", pgid, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("cannot kill the hook's process group %d: it does not end", pgid)
		}
	}

	return nil
}

// isGroupRunning reports whether a process of the group lives. It does not count processes that are dead and
// not yet collected by their parent, as kill(2) would.
func isGroupRunning(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return unix.Kill(-pgid, 0) == nil
	}

	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := osutil.ReadProcStat(pid); err == nil && !st.IsGone() && st.Field(5) == strconv.Itoa(pgid) {
			return true
		}
	}

	return false
}

// record says which process runs which hook, so that an agent that starts after a crash
// finds it. The start time makes the process id unique, the boot id a start time that is
// counted from the machine's boot.
type record struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// recordSize is every record's: what follows the JSON is blank.
const recordSize = 256

// writeRecord writes the note about the hook's process. It overwrites the previous note in place, since a new
// file for each hook would cost more than all other work of its begin. The note need not be durable, since no
// process outlives a loss of power.
func writeRecord(path, id string, pid int) error {
	st, err := osutil.ReadProcStat(pid)
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}

	data, _ := json.Marshal(record{ID: id, PID: pid, Start: st.Start(), Boot: osutil.BootID()}) // never fails
	err = overwrite(path, fmt.Appendf(nil, "%-*s\n", recordSize-1, data))
	if err != nil {
		return fmt.Errorf("cannot note the hook's process: %w", err)
	}

	return nil
}

// overwrite writes a record in place if the file has a record's size, which needs no new file. Otherwise it
// replaces the file.
func overwrite(path string, data []byte) error {
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

// Reap kills the process group of a run that a dead agent has released, if its leading process still lives.
// It waits for the group's end and returns true then. Daemons whose leading process is gone are left alone.
// If there is no record, or one of another run, this run was never released.
//
// It returns an error if the record cannot be read. No agent wrote such a record, so that nobody knows
// whether the process still runs.
func Reap(path, id string) (killed bool, err error) {
	r, lives, err := findRun(path, id)
	if err != nil || !lives {
		return false, err
	}
	return true, killGroup(r.PID)
}

// findRun reads the note about the last hook's process. lives reports whether that is the run with this id,
// and it still runs.
func findRun(path, id string) (r record, lives bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("cannot read the note about the last hook: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, false, fmt.Errorf("cannot find out if the last hook still runs, since the note %q about its process is damaged: "+
			"end its remaining processes, then remove that file: %w", path, err)
	}

	return r, r.ID == id && r.Boot == osutil.BootID() && r.alive(), nil
}

// StillRuns reports whether the process that was released last still runs, be its agent alive
// or not.
func StillRuns(path string) (bool, error) {
	r, _, err := findRun(path, "")
	return err == nil && r.Boot == osutil.BootID() && r.alive(), err
}

// LastRun returns the id of the run that was released last; empty if there was none.
func LastRun(path string) (id string, err error) {
	r, _, err := findRun(path, "")
	return r.ID, err
}

// alive reports whether that very process runs, not another one with its id.
func (r record) alive() bool {
	st, err := osutil.ReadProcStat(r.PID)
	return err == nil && !st.IsGone() && st.Start() == r.Start
}
