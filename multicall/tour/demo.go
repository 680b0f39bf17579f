package tour

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/console"
)

// The releases of the demo: what the servers begin with, and what is published.
const (
	firstRelease   = "2026.1.1-1"
	goodRelease    = "2026.1.8-1"
	failingRelease = "2026.1.15-1"
)

// Demo runs `neco demo`.
func Demo(s console.Streams) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The servers end with the thread that has started them, so also if this
	// process is killed: it must be one that stays.
	runtime.LockOSThread()
	dir, err := os.MkdirTemp("", "neco-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demo{dir: dir, presenter: presenter{
		out: s.Out, coloured: console.CanColour(s.Out),
		environ: append(withoutVars(os.Environ(), "NECO_"), "NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db")),
	}}
	if d.releases, err = startReleaseServer(); err != nil {
		return err
	}
	defer d.releases.close()
	ctx, stopServers := context.WithCancel(ctx)
	defer d.daemons.Wait()
	defer stopServers()
	if err = d.runSteps(ctx); ctx.Err() != nil {
		return errors.New("the demo was interrupted")
	}
	return err
}

type demo struct {
	presenter
	dir      string
	releases *releaseServer
	daemons  sync.WaitGroup
}

func (d *demo) runSteps(ctx context.Context) error {
	d.printHeading("Three boot servers in %s, which run release %s", d.dir, firstRelease)
	for _, part := range []func(context.Context) error{d.setUpServers, d.showUpdate, d.showFailure, d.showRecovery} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if err := d.runApplet(ctx, "neco", "history"); err != nil {
		return err
	}
	d.printHeading("That was all. Everything is stopped and removed now.")
	return nil
}

func (d *demo) setUpServers(ctx context.Context) error {
	if err := d.publishRelease(firstRelease); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init"},
		{"bootserver", "add", "0", "1", "2"},
		{"config", "set", "github-url", d.releases.baseURL()},
		{"config", "set", "github-repository", repository},
		{"config", "set", "check-update-interval", "1s"},
		{"config", "set", "notify.webhook", d.releases.baseURL() + "alerts"},
	} {
		if err := d.runApplet(ctx, "neco", args...); err != nil {
			return err
		}
	}
	if err := errors.Join(d.startServers(ctx), d.awaitWorkers(ctx)); err != nil {
		return err
	}
	d.printHeading("neco-updater and neco-worker run on each of them. From now on they take what is released:")
	if err := d.runApplet(ctx, "neco", "config", "set", "env", "production"); err != nil {
		return err
	}
	return d.watchUntil(ctx, stateUpToDate, firstRelease)
}

func (d *demo) showUpdate(ctx context.Context) error {
	d.printHeading("Release %s is published. Nobody has to do anything:", goodRelease)
	if err := d.publishRelease(goodRelease); err != nil {
		return err
	}
	if err := d.watchUntil(ctx, stateUpToDate, goodRelease); err != nil {
		return err
	}
	return d.showStatus(ctx)
}

func (d *demo) showFailure(ctx context.Context) error {
	d.printHeading("Release %s is published, while the disk of server 1 is full:", failingRelease)
	if err := os.WriteFile(d.fullDiskFile(), nil, 0o600); err != nil {
		return err
	}
	if err := d.publishRelease(failingRelease); err != nil {
		return err
	}
	if err := d.watchUntil(ctx, stateStopped, failingRelease); err != nil {
		return err
	}
	return d.showStatus(ctx)
}

func (d *demo) showRecovery(ctx context.Context) error {
	d.printHeading("All servers have stopped, and wait. The administrator makes room on server 1:")
	if err := os.Remove(d.fullDiskFile()); err != nil {
		return err
	}
	if err := d.runApplet(ctx, "neco", "recover"); err != nil {
		return err
	}
	return d.watchUntil(ctx, stateUpToDate, failingRelease)
}

// fullDiskFile names the file whose presence makes server 1's disk count as full.
func (d *demo) fullDiskFile() string { return filepath.Join(d.serverDir(1), "full") }

// showStatus ignores the exit code, which tells the state.
func (d *demo) showStatus(ctx context.Context) error {
	if err := d.runApplet(ctx, "neco", "status"); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

func (d *demo) showAlert(ctx context.Context) error {
	select {
	case message := <-d.releases.alerts:
		fmt.Fprintf(d.out, "\n%s %s\n", d.paintText(console.Bold, "The webhook got:"), message)
		return nil
	case <-time.After(demoTimeout):
		return errors.New("no alert came")
	case <-ctx.Done():
		return ctx.Err()
	}
}
