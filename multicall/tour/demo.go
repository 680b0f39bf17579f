package tour

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
	"bijou/state/childenv"
	"bijou/state/osutil"
)

//go:embed demo.txt
var demoScript string

// Demo runs `neco demo`: it updates a fleet of boot servers, which are processes of this host, and prints each step.
// At the end, and also after a signal, it ends all processes and removes all files that it has created. It returns an
// error if a step fails or a signal interrupts the demo.
func Demo(s console.Streams) (err error) {
	// SIGPIPE arrives if the reader of stdout exits. The demo must still clean up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()

	// The kernel kills the daemons when the thread that has started them ends. So they also end if this process is
	// killed, but the thread must exist until the end of the demo.
	runtime.LockOSThread()

	dir, err := os.MkdirTemp("", "neco-demo-")
	if err != nil {
		return fmt.Errorf("cannot create a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	d := &demo{dir: dir, presenter: presenter{
		out:      s.Out,
		coloured: console.CanColour(s.Out),
		environ: append(childenv.New(os.Environ(), childenv.Tour),
			"NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db")),
	}}
	if d.releases, err = startReleaseServer(filepath.Join(dir, "published")); err != nil {
		return err
	}
	defer d.releases.close()

	// Deferred calls run in reverse order. stopServers must run before Wait, since the daemons end only with ctx.
	ctx, stopServers := context.WithCancel(ctx)
	defer d.daemons.Wait()
	defer stopServers()

	err = d.runSteps(ctx)
	if ctx.Err() != nil {
		return errors.New("the demo was interrupted")
	}

	return err
}

// demo is one run of `neco demo`.
type demo struct {
	presenter
	dir      string // contains all files of the demo
	releases *releaseServer
	daemons  sync.WaitGroup
}

// runSteps carries out the script of the demo, with the verbs that the script uses.
func (d *demo) runSteps(ctx context.Context) error {
	values := strings.NewReplacer("{{dir}}", d.dir, "{{url}}", d.releases.url, "{{repository}}", repository)
	return d.play(ctx, demoScript, values, map[string]verb{
		"publish": func(_ context.Context, args ...string) error { return d.releases.publish(args[0]) },
		"start":   d.startServers,
		"await":   d.watchUntil,
		"status":  d.showStatus,
		"fill-disk": func(_ context.Context, args ...string) error {
			// An empty file is enough: while it exists, serverScript plays a full disk.
			return os.WriteFile(d.fullDiskFile(args[0]), nil, 0o600)
		},
		"make-room": func(_ context.Context, args ...string) error { return os.Remove(d.fullDiskFile(args[0])) },
	})
}

// fullDiskFile returns the path of the file whose presence makes a server's disk count as full.
func (d *demo) fullDiskFile(lrn string) string { return filepath.Join(d.serverDir(lrn), "full") }

// showStatus prints the fleet's status. It ignores an error of the command, since the exit code depends on the
// fleet's state. It returns the error only if ctx is done.
func (d *demo) showStatus(ctx context.Context, _ ...string) error {
	if err := d.runApplet(ctx, "neco", "status"); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// showAlert waits for the alert about the end of the update to the version, and prints the alert. In the alert's text,
// outcome follows the version. showAlert skips all other alerts, such as those about earlier updates, which may be late
// on a busy machine. It returns an error if the alert does not arrive within demoTimeout.
func (d *demo) showAlert(ctx context.Context, version, outcome string) error {
	timeout := time.After(demoTimeout)
	for {
		select {
		case message := <-d.releases.alerts:
			if strings.Contains(message, version+" "+outcome) {
				fmt.Fprintf(d.out, "\n%s %s\n", d.paintText(console.Bold, "The webhook received:"), message)
				return nil
			}
		case <-timeout:
			return fmt.Errorf("no alert with the text \"%s %s\" has arrived", version, outcome)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// serverScript replaces systemctl and podman on a boot server.
//
//go:embed demoserver.sh
var serverScript string

// serverDir returns the directory of a server. In this directory, bin/ holds the programs that are installed on the
// server, and var/ holds the worker's files.
func (d *demo) serverDir(lrn string) string { return filepath.Join(d.dir, "server-"+lrn) }

// startServers starts the daemons of three servers with the release in args[0]. The daemons run until ctx is done.
// startServers returns once all workers are running, because an update does not wait for a worker that has never run.
func (d *demo) startServers(ctx context.Context, args ...string) error {
	release := args[0]
	for _, lrn := range []string{"0", "1", "2"} {
		if err := d.installServer(lrn, release); err != nil {
			return fmt.Errorf("cannot create boot server %s: %w", lrn, err)
		}

		services := filepath.Join(d.serverDir(lrn), "bin", "systemctl")
		for _, argv := range [][]string{
			{"neco-updater"},
			{"neco-worker", "--lrn", lrn, "--dir", filepath.Join(d.serverDir(lrn), "var"), "--services", services},
		} {
			if err := d.startDaemon(ctx, lrn, argv); err != nil {
				return fmt.Errorf("cannot start %s of boot server %s: %w", argv[0], lrn, err)
			}
		}
	}

	return d.pollStatus(ctx, "not all servers had a running worker", func(f fleetStatus) (bool, error) {
		return !slices.ContainsFunc(f.Servers, func(s serverStatus) bool { return s.Worker == "" }), nil
	})
}

// installServer creates the programs and the manifest of a server that runs the release. bijou is a copy of this
// binary. systemctl and podman are serverScript, which only imitates them.
func (d *demo) installServer(lrn, release string) error {
	bin := filepath.Join(d.serverDir(lrn), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}

	for name, data := range map[string][]byte{"bijou": binary, "systemctl": []byte(serverScript), "podman": []byte(serverScript)} {
		if err := writeProgram(filepath.Join(bin, name), data); err != nil {
			return err
		}
	}

	return os.WriteFile(filepath.Join(bin, "manifest.yaml"), []byte(makeManifest(release)), 0o644)
}

// writeProgram writes an executable file.
func writeProgram(path string, data []byte) error {
	return osutil.WriteFile(path, data, 0o755)
}

// startDaemon starts a daemon of a server, which runs until ctx is done. argv[0] is the daemon's name, by which bijou
// chooses the applet. When an update has replaced the daemon's program, the daemon re-executes as the new program.
func (d *demo) startDaemon(ctx context.Context, lrn string, argv []string) error {
	bin := filepath.Join(d.serverDir(lrn), "bin")
	log, err := os.Create(filepath.Join(d.serverDir(lrn), argv[0]+".log"))
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.CommandContext(ctx, filepath.Join(bin, "bijou"))
	cmd.Args = argv
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(slices.Clone(d.environ), "PATH="+bin+":"+os.Getenv("PATH"), "BOOT_SERVER="+d.serverDir(lrn))
	// In its own process group, the daemon gets no interrupt from the terminal. Pdeathsig is explained in Demo.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}

	d.daemons.Go(func() { _ = cmd.Wait() })
	return nil
}

// stateStopped is the state of `neco status` after an update has failed. The demo must then stop waiting for success.
const stateStopped = "stopped"

// fleetStatus is the part of `neco status --format json` that the demo reads.
type fleetStatus struct {
	State   string         `json:"state"`
	Why     string         `json:"why"`
	Version string         `json:"version"`
	Servers []serverStatus `json:"servers"`
}

// serverStatus is the status of one boot server.
type serverStatus struct {
	LRN    int    `json:"lrn"`
	Worker string `json:"worker-version"` // empty if the worker does not run
	Status *struct {
		Version  string `json:"version"`
		Step     int    `json:"step"`
		StepName string `json:"step-name"`
		Finished bool   `json:"finished"`
		Error    bool   `json:"error"`
		Message  string `json:"message"`
	} `json:"status"`
}

// watchUntil waits until the fleet is in a state with a version, and prints each change of a server. It then waits for
// the alert about the end of the update, and prints the alert. args are the version and the words of the state. It
// returns an error if the update is stopped, unless args name the state stopped. It also returns an error if one of the
// two waits takes longer than demoTimeout.
func (d *demo) watchUntil(ctx context.Context, args ...string) error {
	version := args[0]
	state := strings.Join(args[1:], " ")
	begun := time.Now()
	printed := map[string]string{} // the last line of each server
	timeoutText := fmt.Sprintf("the servers were not %s with %s", state, version)
	err := d.pollStatus(ctx, timeoutText, func(f fleetStatus) (bool, error) {
		lines := f.progressLines(version)
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if line := lines[name]; printed[name] != line {
				fmt.Fprintf(d.out, "  %5.1f s  %s  %s\n", time.Since(begun).Seconds(), name, d.colourLine(line))
				printed[name] = line
			}
		}

		switch {
		case f.State == state && f.Version == version:
			return true, nil
		case f.State == stateStopped && f.Version == version:
			return false, fmt.Errorf("the update to %s was stopped: %s", version, f.Why)
		}

		return false, nil
	})
	if err != nil {
		return err
	}

	// In the alert, "succeeded" stands for the state "up to date".
	outcome := "succeeded"
	if state == stateStopped {
		outcome = stateStopped
	}
	return d.showAlert(ctx, version, outcome)
}

// pollInterval is the pause between two reads of the status.
const pollInterval = 100 * time.Millisecond

// pollStatus reads the fleet's status until done returns true, and then returns nil. It returns the first error of a
// read, of done or of ctx. After demoTimeout it returns an error that begins with timeoutText.
func (d *demo) pollStatus(ctx context.Context, timeoutText string, done func(f fleetStatus) (bool, error)) error {
	for begun := time.Now(); time.Since(begun) < demoTimeout; {
		f, err := d.readStatus(ctx)
		if err != nil {
			return err
		}
		isDone, err := done(f)
		if err != nil {
			return err
		}
		if isDone {
			return nil
		}

		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}

	return fmt.Errorf("%s within %s", timeoutText, demoTimeout)
}

// readStatus runs neco status and parses its output. If there is output, it accepts exit codes other than 0, since the
// exit code depends on the fleet's state.
func (d *demo) readStatus(ctx context.Context) (f fleetStatus, err error) {
	out, err := d.newCommand(ctx, "neco", "status", "--format", "json").Output()
	_, hasExited := errors.AsType[*exec.ExitError](err)
	hasStatus := hasExited && len(out) > 0
	if err != nil && !hasStatus {
		return f, fmt.Errorf("cannot run neco status: %w", err)
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("cannot parse the output of neco status: %w", err)
	}

	return f, nil
}

// progressLines returns a line for each server that has begun the update to the version. The keys are the servers'
// names.
func (f fleetStatus) progressLines(version string) map[string]string {
	lines := map[string]string{}
	for _, s := range f.Servers {
		name := fmt.Sprintf("server %d", s.LRN)
		switch update := s.Status; {
		case update == nil || update.Version != version:
			// The server has not begun.
		case update.Error:
			lines[name] = "failed: " + update.Message
		case update.Finished:
			lines[name] = "done: runs " + s.Worker // the worker's version
		case update.Step == 0:
			// The steps are numbered from 1. What the worker does before them has only a name.
			lines[name] = update.StepName
		default:
			lines[name] = fmt.Sprintf("step %d: %s", update.Step, update.StepName)
		}
	}

	return lines
}

// colourLine colours a line of progressLines if the server has failed or is done.
func (d *demo) colourLine(line string) string {
	switch {
	case strings.HasPrefix(line, "failed: "):
		return d.paintText(console.Red, line)
	case strings.HasPrefix(line, "done: "):
		return d.paintText(console.Green, line)
	}

	return line
}
