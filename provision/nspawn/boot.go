package nspawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/provision/provider"
	"bijou/state/osutil"
	"bijou/state/text"
)

const (
	// bootTimeout limits a boot. It is many times as long as a boot takes.
	bootTimeout = 2 * time.Minute
	// abortTimeout limits the removal of a container that did not boot.
	abortTimeout = 20 * time.Second
)

// launch is one boot of one container.
type launch struct {
	provider    *Provider
	spec        provider.Spec
	record      provider.Record
	tree        string    // the directory tree below the container's overlay
	lock        *os.File  // the lock of the instance
	boot        io.Writer // for the output and progress of the boot
	tools       string    // the directory of the agent's binary
	hostFolders []string  // directories of the host that are mounted in the container at the same paths

	gateway string // the directory of the machine's gateway, or empty if the container can reach the state itself
	state   string // the state's URL, or empty for the URL in environment.yaml
}

func (l launch) id() string  { return l.provider.instanceID(l.spec.Machine) }
func (l launch) dir() string { return filepath.Join(l.provider.dir, l.id()) }

// bootedFile marks a container that has booted.
const bootedFile = "booted"

// hasBooted reports whether the container's system has booted. A running container that has not booted may be
// only the shell that starts it, for example if this program was killed in the middle of a boot.
func (p *Provider) hasBooted(id string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, id, bootedFile))
	return err == nil
}

// bootContainer starts the container, and blocks until the container's systemd is up. It first ends a previous
// container of the machine, and prepares the machine's files. If the container does not boot, or the boot
// cannot be recorded, bootContainer ends the container, and keeps the machine's files.
func (p *Provider) bootContainer(ctx context.Context, l launch) error {
	// Without the mark, the instance does not count as running.
	mark := filepath.Join(l.dir(), bootedFile)
	if err := os.RemoveAll(mark); err != nil {
		return err
	}

	if err := p.endContainer(ctx, l.id()); err != nil {
		return err
	}
	if err := l.prepareFiles(); err != nil {
		return err
	}
	if err := p.indexRepository(ctx, l.boot); err != nil {
		return err
	}

	err := l.runContainer(ctx)
	if err != nil {
		return errors.Join(err, l.abort(ctx))
	}
	if err := osutil.WriteFile(mark, nil, 0o600); err != nil {
		return errors.Join(err, l.abort(ctx))
	}

	return nil
}

// endContainer kills all processes of a container, and removes its network link. It returns nil if there is no
// such container. It keeps the container's files.
func (p *Provider) endContainer(ctx context.Context, id string) error {
	if err := p.manager.kill(ctx, id); err != nil {
		return err
	}
	return removeLink(ctx, id)
}

// abort ends the container, even if ctx is done.
func (l launch) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return l.provider.endContainer(ctx, l.id())
}

// runContainer starts the container, and waits until its system is up.
func (l launch) runContainer(ctx context.Context) error {
	ready, err := listenReady(l.id())
	if err != nil {
		return err
	}
	defer ready.Close()

	console, err := l.openConsole()
	if err != nil {
		return err
	}
	defer console.close()

	if !hostForwards() {
		fmt.Fprintln(
			l.boot,
			"warning: the container cannot reach other networks, so charms cannot download anything: net.ipv4.ip_forward is 0 on this host; to allow it, before the container boots: sysctl -w net.ipv4.ip_forward=1",
		)
	}

	fmt.Fprintf(l.boot, "container %s boots, with the address %s\n", l.id(), l.record.Address)
	// boot.sh takes the machine's directory and the socket, and then the command that it runs.
	unlimited, err := l.provider.manager.start(ctx, l.id(), command{
		args:   slices.Concat([]string{l.dir(), ready.LocalAddr().String()}, hierarchyArgs(l.tree), l.commandArgs()),
		log:    console.path,
		lock:   l.lock,
		limits: l.spec.Constraints.Hardware(),
	})
	if err != nil {
		return err
	}

	l.warnUnlimited(unlimited)
	return l.awaitReady(ctx, ready, console)
}

// warnUnlimited prints a warning with the machine's constraints that are not enforced, if there are any: the given
// ones, and those on the disk and on CPU power, which are never enforced.
func (l launch) warnUnlimited(unlimited []string) {
	asked := l.spec.Constraints.Hardware()
	if asked.RootDisk > 0 {
		unlimited = append(unlimited, fmt.Sprintf("root-disk=%dM", asked.RootDisk))
	}
	if asked.CPUPower > 0 {
		unlimited = append(unlimited, fmt.Sprintf("cpu-power=%d", asked.CPUPower))
	}
	if len(unlimited) > 0 {
		fmt.Fprintf(l.boot, "warning: not enforced on this host: %s\n", strings.Join(unlimited, " "))
	}
}

// commandArgs returns the command line of systemd-nspawn for the machine.
func (l launch) commandArgs() []string {
	p := l.provider
	args := []string{
		"systemd-nspawn", "--quiet", "--boot", "--directory=" +
			filepath.Join(l.dir(), "root"), "--machine=" + l.id(),
		"--network-bridge=" + p.bridgeName(), "--timezone=off", "--link-journal=no", "--register=no", "--keep-unit",
		"--console=pipe", "--notify-ready=yes",
	}

	args = append(args, l.environmentArgs()...)
	for _, folder := range l.hostFolders {
		args = append(args, mountOption("--bind=", folder, folder))
	}
	if from := p.aptRepository(); from != "" {
		args = append(args, mountOption("--bind-ro=", filepath.Join(p.dir, indexFolder), repositoryRoot),
			mountOption("--bind-ro=", from, repositoryPool))
	}

	return args
}

// minUnifiedSystemd is the first version of systemd that supports only control groups of version 2.
const minUnifiedSystemd = 258

// hierarchyArgs returns the words to put before systemd-nspawn so that the tree's systemd gets control
// groups of the version that it needs.
func hierarchyArgs(tree string) []string {
	if systemdVersion(tree) < minUnifiedSystemd {
		return nil
	}
	return []string{"env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"}
}

// systemdVersion returns the version of systemd in the tree, or 0 if the version is unknown.
func systemdVersion(tree string) int {
	for _, pattern := range []string{"usr/lib/*/systemd", "usr/lib/systemd"} {
		// Glob fails only if the pattern is malformed.
		found, _ := filepath.Glob(filepath.Join(tree, pattern, "libsystemd-shared-*.so"))
		for _, path := range found {
			name := strings.TrimSuffix(filepath.Base(path), ".so")
			// The version may have more parts, such as 252.38-1.
			digits, _, _ := strings.Cut(strings.TrimPrefix(name, "libsystemd-shared-"), ".")
			if version, err := strconv.Atoi(digits); err == nil {
				return version
			}
		}
	}

	return 0
}

// mountOption returns a bind option of systemd-nspawn. The mount does not include file systems that are
// mounted below the directory from.
func mountOption(option, from, to string) string {
	return option + escapeMount(from) + ":" + escapeMount(to) + ":norbind"
}

// escapeMount escapes a path for the options of systemd-nspawn(1).
func escapeMount(path string) string { return strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(path) }

// listenReady listens on an abstract socket for messages of sd_notify(3).
func listenReady(id string) (*net.UnixConn, error) {
	return net.ListenUnixgram("unixgram", &net.UnixAddr{
		Net:  "unixgram",
		Name: fmt.Sprintf("@%s-%d-%d", id, os.Getpid(), time.Now().UnixNano()),
	})
}

// awaitReady waits until the container's systemd reports that it is up. It prints the console's output in
// the meantime. It returns an error if the container ends first, or is not up after bootTimeout.
func (l launch) awaitReady(ctx context.Context, ready *net.UnixConn, console *console) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()

	message := make([]byte, 4096)
	for ctx.Err() == nil {
		// Wait only a moment for a message, so that the output and the container are also checked.
		// SetReadDeadline fails only if the socket is closed. In that case, the read below also fails.
		_ = ready.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := ready.Read(message)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}

		console.readOn()
		// READY=1 is one of the lines of a message.
		isReady := strings.Contains("\n"+string(message[:n]), "\nREADY=1")
		if isReady {
			fmt.Fprintf(l.boot, "container %s is up\n", l.id())
			return nil
		}

		runs, err := l.provider.manager.isRunning(l.id())
		if err != nil {
			return err
		}
		if !runs {
			// Read the output between the last read and the end.
			console.readOn()
			return fmt.Errorf("the container ended at once, with the output: %s", console.lastOutput())
		}
	}

	return fmt.Errorf("the container did not start: %w; its last output: %s", ctx.Err(), console.lastOutput())
}

// controls matches control characters and terminal escape sequences.
var controls = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\a\x1b]*(\a|\x1b\\\\)|[\x00-\x08\x0b-\x1f\x7f]")
})

// console follows the output of a container while it boots.
type console struct {
	path      string
	f         *os.File
	lines     text.LineWriter
	lastLines []string
}

// maxConsoleLine limits a line of the console, in bytes.
const maxConsoleLine = 64 << 10

// openConsole opens the container's console log, and creates it if it is missing. It skips the output of
// previous boots. The new lines are written to l.boot when the console is read.
func (l launch) openConsole() (*console, error) {
	path := filepath.Join(l.dir(), "console.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		f.Close()
		return nil, err
	}

	c := &console{path: path, f: f, lines: text.LineWriter{Max: maxConsoleLine}}
	c.lines.Emit = func(line string) { c.addLine(l.boot, line) }
	return c, nil
}

func (c *console) close() {
	_ = c.f.Close()
}

// readOn reads the console up to its current end. It ignores errors, since the output is only for
// information.
func (c *console) readOn() {
	_, _ = io.Copy(&c.lines, c.f)
}

// addLine writes a line of output to w without control characters, and keeps the last three lines for errors. It
// ignores a line without text.
func (c *console) addLine(w io.Writer, line string) {
	line = strings.TrimSpace(controls().ReplaceAllString(line, ""))
	if line == "" {
		return
	}

	fmt.Fprintln(w, line)
	c.lastLines = append(c.lastLines[max(0, len(c.lastLines)-2):], line)
}

// lastOutput returns the last lines of output, including an incomplete one, for an error message. It returns
// "nothing" if there was no output. The console cannot be read further afterwards.
func (c *console) lastOutput() string {
	// Close passes an incomplete line to addLine.
	c.lines.Close()
	if len(c.lastLines) == 0 {
		return "nothing"
	}
	return strings.Join(c.lastLines, "; ")
}
