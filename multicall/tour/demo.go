package tour

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/console"
)

//go:embed demo.txt
var demoScript string

// Demo runs `neco demo`.
func Demo(s console.Streams) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
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
	if d.releases, err = startReleaseServer(filepath.Join(dir, "published")); err != nil {
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
	values := strings.NewReplacer("{{dir}}", d.dir, "{{url}}", d.releases.url, "{{repository}}", repository)
	return d.play(ctx, demoScript, values, map[string]verb{
		"publish": func(_ context.Context, args ...string) error { return d.releases.publish(args[0]) },
		"start":   d.startServers,
		"await":   d.watchUntil,
		"status":  d.showStatus,
		"fill-disk": func(_ context.Context, args ...string) error {
			return os.WriteFile(d.fullDiskFile(args[0]), nil, 0o600)
		},
		"make-room": func(_ context.Context, args ...string) error { return os.Remove(d.fullDiskFile(args[0])) },
	})
}

// fullDiskFile names the file whose presence makes a server's disk count as full.
func (d *demo) fullDiskFile(lrn string) string { return filepath.Join(d.serverDir(lrn), "full") }

// showStatus ignores the exit code, which tells the state.
func (d *demo) showStatus(ctx context.Context, _ ...string) error {
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
