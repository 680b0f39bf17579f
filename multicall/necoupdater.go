package multicall

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/updater"
	"bijou/updater/host"
)

// necoUpdaterGrammar is the command line of neco-updater.
type necoUpdaterGrammar struct {
	State   string `required:"" env:"NECO_STATE" placeholder:"URL" help:"Where neco's keys are: etcd://HOST:PORT,..., or sqlite:PATH."`
	Metrics string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address."`
}

const necoUpdaterSummary = `Runs on every boot server, until it is told to stop (SIGTERM). One of them leads: it looks for releases,
starts updates, watches over them, and reports how they end. If it dies, another one goes on.

Examples:
  neco-updater --state etcd://10.0.0.3:2379,10.0.1.3:2379
  neco-updater --state sqlite:/srv/neco.db --metrics 127.0.0.1:9300`

// runNecoUpdater is neco-updater.
func runNecoUpdater(c call) int {
	var g necoUpdaterGrammar
	return daemon(c, console.Command{Name: "neco-updater", Summary: necoUpdaterSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveUpdater(ctx, d, g)
	})
}

// serveUpdater is the process of a boot server's updater. Which server that is
// does not matter to it.
func serveUpdater(ctx context.Context, d daemonParts, g necoUpdaterGrammar) (err error) {
	_, version, err := ownManifest()
	if err != nil {
		return err
	}
	binary, err := self()
	if err != nil {
		return err
	}
	metrics := &updater.UpdaterMetrics{}
	stop, err := serveMetrics(g.Metrics, metrics)
	if err != nil {
		return err
	}
	defer stop()
	store, err := openKeys(ctx, g.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	slog.Info("campaigns", "version", version)
	err = together(ctx, []role{
		func(ctx context.Context) error {
			return updater.RunUpdater(ctx, updater.UpdaterOptions{Store: store, Version: version, Form: host.Form(binary), Metrics: metrics, Ready: d.manager.ready})
		},
		func(ctx context.Context) error { return replaced(ctx, store) },
	})
	if errors.Is(err, errReplaced) {
		return successor{}
	}
	return err
}

// errReplaced: another executable lies where this process's was.
var errReplaced = errors.New("the executable was replaced")

// replacedLook is the time between two looks at the executable.
const replacedLook = 2 * time.Second

// replaced returns when a worker has installed another version in this program's
// place, which is to go on: once that has shown that it works, so that whoever leads
// outlives a release that does not, and can say so.
func replaced(ctx context.Context, store *state.Keyspace) error {
	path, err := self()
	if err != nil {
		return err
	}
	tick := time.NewTicker(replacedLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if there := same(path, path); !there || same(path, "/proc/self/exe") {
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
