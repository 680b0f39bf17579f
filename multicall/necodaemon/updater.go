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
	State   string `required:"" env:"NECO_STATE" placeholder:"URL" help:"Use neco's keys in this store: etcd://HOST:PORT,..., or sqlite:PATH."`
	Metrics string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address."`
}

// RunUpdater runs the applet neco-updater.
func RunUpdater(c applet.Call) int {
	var g necoUpdaterGrammar
	return daemon.Run(c, console.Command{Name: "neco-updater", Grammar: &g, Help: helpFiles}, g.serve)
}

// serve opens the store and runs the leader's loop until ctx is done, or until a different binary must
// continue, as awaitReplacement decides.
func (g *necoUpdaterGrammar) serve(ctx context.Context, d daemon.Daemon) error {
	_, version, err := OwnManifest()
	if err != nil {
		return err
	}
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	registry := metrics.NewRegistry()

	return runWithStore(ctx, g.State, g.Metrics, registry, func(store *keyspace.Space) error {
		slog.Info("campaigns", "version", version)
		options := leader.Options{
			Store:   store,
			Version: version,
			Form:    host.InstalledForm(binary),
			Metrics: registry,
			Ready:   d.Notifier.NotifyReady,
		}

		return daemon.RunRoles(ctx, []daemon.Role{
			func(ctx context.Context) error { return leader.Run(ctx, options) },
			func(ctx context.Context) error { return awaitReplacement(ctx, store) },
		})
	})
}

// errReplaced is returned if a different executable is at this process's path.
var errReplaced = errors.New("the executable was replaced")

// executablePollInterval is the time between two checks whether the executable was replaced.
const executablePollInterval = 2 * time.Second

// awaitReplacement returns errReplaced once a different executable is at this program's path, and the version
// that the workers have installed is proven to work. Until then the leader keeps running, and can report a
// release that does not work. When ctx is done, awaitReplacement returns nil.
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

		exists := applet.IsSameFile(path, path) // without a file there is nothing to switch to
		isReplaced := exists && !applet.IsSameFile(path, "/proc/self/exe")
		if !isReplaced {
			continue
		}

		isProven, err := updater.Proven(ctx, store)
		if isProven {
			return errReplaced
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot find out whether a different version must take over; trying again", "error", err)
		}
	}
}
