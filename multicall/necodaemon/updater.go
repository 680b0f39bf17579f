package necodaemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/host"
	"bijou/updater/leader"
)

type necoUpdaterGrammar struct {
	State   string `required:"" env:"NECO_STATE" placeholder:"URL" help:"Where neco's keys are: etcd://HOST:PORT,..., or sqlite:PATH."`
	Metrics string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address."`
}

// RunUpdater runs the applet neco-updater.
func RunUpdater(c applet.Call) int {
	var g necoUpdaterGrammar
	return daemon.Run(c, console.Command{Name: "neco-updater", Grammar: &g, Help: helpFiles}, g.serve)
}

// serve opens the store and runs the leader's loop until this process must end, or another binary takes its
// place.
func (g *necoUpdaterGrammar) serve(ctx context.Context, d daemon.Daemon) error {
	_, version, err := OwnManifest()
	if err != nil {
		return err
	}
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	measured := metrics.NewRegistry()

	return serve(ctx, g.State, g.Metrics, measured, func(store *keyspace.Space) error {
		slog.Info("campaigns", "version", version)
		o := leader.Options{
			Store:   store,
			Version: version,
			Form:    host.InstalledForm(binary),
			Metrics: measured,
			Ready:   d.Notifier.NotifyReady,
		}

		return daemon.RunRoles(ctx, []daemon.Role{
			func(ctx context.Context) error { return leader.Run(ctx, o) },
			func(ctx context.Context) error { return awaitReplacement(ctx, store) },
		})
	})
}

// errReplaced means that another executable lies at this process's path.
var errReplaced = errors.New("the executable was replaced")

const executablePollInterval = 2 * time.Second

// awaitReplacement returns when a worker has installed another version in this program's
// place and that version has shown that it works, so that the leader outlives a release
// that does not, and can report it.
func awaitReplacement(ctx context.Context, store *keyspace.Space) error {
	path, err := applet.ExecutablePath()
	if err != nil {
		return err
	}

	tick := time.NewTicker(executablePollInterval)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		if there := applet.IsSameFile(path, path); !there || applet.IsSameFile(path, "/proc/self/exe") {
			continue
		}
		proven, err := updater.Proven(ctx, store)
		if proven {
			return errReplaced
		}

		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot see if another version is to go on; looking again", "error", err)
		}
	}
}
