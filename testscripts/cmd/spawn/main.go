// Command spawn runs commands in turn many times. It uses no shell, because the fork of a shell takes longer
// than a hook tool. It prints a line for each command: the median of its time and of its CPU time in
// microseconds, its memory in KiB while it writes, and the command.
//
//	spawn TIMES COMMAND...      each COMMAND with its arguments in one word
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	times, err := strconv.Atoi(os.Args[1])
	check(err)
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	check(err)
	commands := os.Args[2:]
	took, used := make([][]time.Duration, len(commands)), make([][]time.Duration, len(commands))
	for range times {
		for i, command := range commands {
			wall, cpu := run(strings.Fields(command), null)
			took[i], used[i] = append(took[i], wall), append(used[i], cpu)
		}
	}
	for i, command := range commands {
		fmt.Println(median(took[i]), median(used[i]), measureResident(strings.Fields(command)), command)
	}
}

func run(argv []string, null int) (wall, cpu time.Duration) {
	path, err := exec.LookPath(argv[0])
	check(err)
	begun := time.Now()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{uintptr(null), uintptr(null), uintptr(null)}})
	check(err)
	var status syscall.WaitStatus
	var usage syscall.Rusage
	_, err = syscall.Wait4(pid, &status, 0, &usage)
	wall = time.Since(begun)
	check(err)
	if status != 0 {
		check(fmt.Errorf("%q ended with status %#x", argv, status))
	}
	return wall, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measureResident measures a command's memory while the command waits for space in a full pipe. It
// returns 0 for a command that writes nothing.
func measureResident(argv []string) (kib int) {
	r, w, err := os.Pipe()
	check(err)
	fd := int(w.Fd())
	check(syscall.SetNonblock(fd, true))
	for err == nil {
		_, err = syscall.Write(fd, make([]byte, 4096))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout = w // the command blocks as soon as it writes
	check(cmd.Start())
	time.Sleep(300 * time.Millisecond)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	check(err)
	if _, rest, found := strings.Cut(string(status), "VmHWM:"); found {
		fmt.Sscan(rest, &kib)
	}
	go cmd.Wait()
	w.Close()
	for n := 1; n > 0; {
		n, _ = r.Read(make([]byte, 64<<10))
	}
	return kib
}

func median(all []time.Duration) int64 {
	slices.Sort(all)
	return all[len(all)/2].Microseconds()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "spawn:", err)
		os.Exit(1)
	}
}
