package tour

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"bijou/multicall/console"
)

// The releases of the demo: what the servers begin with, and what is published.
const (
	first    = "2026.1.1-1"
	smooth   = "2026.1.8-1"
	troubled = "2026.1.15-1"
)

// Demo is `neco demo`.
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
	d := &demo{dir: dir, stage: stage{
		out: s.Out, coloured: console.Coloured(s.Out),
		environ: append(without(os.Environ(), "NECO_"), "NECO_STATE=sqlite:"+filepath.Join(dir, "neco.db")),
	}}
	if d.releases, err = startReleases(); err != nil {
		return err
	}
	defer d.releases.close()
	defer d.stopServers()
	if err = d.play(ctx); ctx.Err() != nil {
		return errors.New("the demo was interrupted")
	}
	return err
}

// demo is one demo under way.
type demo struct {
	stage
	dir      string
	releases *releases
	servers  []*process
}

// play tells the story.
func (d *demo) play(ctx context.Context) error {
	d.say("Three boot servers in %s, which run release %s", d.dir, first)
	for _, part := range []func(context.Context) error{d.setUp, d.update, d.fail, d.recover} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if err := d.run(ctx, "neco", "history"); err != nil {
		return err
	}
	d.say("That was all. Everything is stopped and removed now.")
	return nil
}

// setUp starts the servers, and tells neco of them.
func (d *demo) setUp(ctx context.Context) error {
	if err := d.publish(first); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init"},
		{"bootserver", "add", "0", "1", "2"},
		{"config", "set", "github-url", d.releases.url()},
		{"config", "set", "github-repository", repository},
		{"config", "set", "check-update-interval", "1s"},
		{"config", "set", "notify.webhook", d.releases.url() + "alerts"},
	} {
		if err := d.run(ctx, "neco", args...); err != nil {
			return err
		}
	}
	if err := errors.Join(d.startServers(), d.awaitWorkers(ctx)); err != nil {
		return err
	}
	d.say("neco-updater and neco-worker run on each of them. From now on they take what is released:")
	if err := d.run(ctx, "neco", "config", "set", "env", "production"); err != nil {
		return err
	}
	if err := d.watch(ctx, upToDate, first); err != nil {
		return err
	}
	return d.alert(ctx)
}

// update publishes a release that goes well.
func (d *demo) update(ctx context.Context) error {
	d.say("Release %s is published. Nobody has to do anything:", smooth)
	if err := d.publish(smooth); err != nil {
		return err
	}
	if err := d.watch(ctx, upToDate, smooth); err != nil {
		return err
	}
	if err := d.alert(ctx); err != nil {
		return err
	}
	return d.status(ctx)
}

// fail publishes one that cannot be installed on one server.
func (d *demo) fail(ctx context.Context) error {
	d.say("Release %s is published, while the disk of server 1 is full:", troubled)
	if err := os.WriteFile(d.full(), nil, 0o600); err != nil {
		return err
	}
	if err := d.publish(troubled); err != nil {
		return err
	}
	if err := d.watch(ctx, stopped, troubled); err != nil {
		return err
	}
	if err := d.alert(ctx); err != nil {
		return err
	}
	return d.status(ctx)
}

// recover mends the disk, and has the update made again.
func (d *demo) recover(ctx context.Context) error {
	d.say("All servers have stopped, and wait. The administrator makes room on server 1:")
	if err := os.Remove(d.full()); err != nil {
		return err
	}
	if err := d.run(ctx, "neco", "recover"); err != nil {
		return err
	}
	if err := d.watch(ctx, upToDate, troubled); err != nil {
		return err
	}
	return d.alert(ctx)
}

// full is the file that makes the disk of server 1 full.
func (d *demo) full() string { return filepath.Join(d.server(1), "full") }

// status shows what an administrator sees. Its exit code tells the state.
func (d *demo) status(ctx context.Context) error {
	if err := d.run(ctx, "neco", "status"); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// alert waits for the alert that follows, and shows it.
func (d *demo) alert(ctx context.Context) error {
	select {
	case message := <-d.releases.alerts:
		fmt.Fprintf(d.out, "\n%s %s\n", d.paint(console.Bold, "The webhook got:"), message)
		return nil
	case <-time.After(demoLimit):
		return errors.New("no alert came")
	case <-ctx.Done():
		return ctx.Err()
	}
}
