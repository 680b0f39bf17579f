// Package terminal gives tests their own terminal, and scripts a program that runs other programs on a terminal.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens a pseudo terminal with the given rows and columns. Text that is written to its inner side can be
// read at the outer side, and vice versa. It returns an error if the machine does not have pseudo terminals.
func Open(rows, columns uint16) (outer, inner *os.File, err error) {
	if outer, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, fmt.Errorf("there are no pseudo terminals: %w", err)
	}
	fd := int(outer.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot open a pseudo terminal: %w", err), outer.Close())
	}
	return outer, inner, nil
}

// Main is the program "terminal FILE PROG ARG...": it runs PROG on its own terminal and types the
// content of the file, then the end of input. The terminal is 80 columns wide, or $COLUMNS. Its stdout
// is everything that the terminal shows, to the last byte, and its exit code is the program's. It
// replaces testscript's command ttyin, which drops unread output when the program ends.
func Main() {
	exit, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		exit = 125
	}
	os.Exit(exit)
}

func run(file string, argv []string) (exit int, err error) {
	typed, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	columns := uint64(80)
	if width, err := strconv.ParseUint(os.Getenv("COLUMNS"), 10, 16); err == nil {
		columns = width
	}
	outer, inner, err := Open(24, uint16(columns))
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	inner.Close()
	const endOfInput = 4
	// Write fails if the program ends before it has read everything.
	go func() { _, _ = outer.Write(append(typed, endOfInput)) }()
	// Reading returns EIO when the inner side is closed.
	if _, err := io.Copy(os.Stdout, outer); !errors.Is(err, syscall.EIO) {
		return 0, err
	}
	err = cmd.Wait()
	if errors.As(err, new(*exec.ExitError)) {
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}
