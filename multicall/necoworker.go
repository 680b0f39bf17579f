package multicall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/updater"
	"bijou/updater/activity"
	"bijou/updater/host"
	"bijou/updater/record"
	"bijou/updater/release"
)

// necoWorkerGrammar is the command line of neco-worker.
type necoWorkerGrammar struct {
	State    string `required:"" env:"NECO_STATE" placeholder:"URL" help:"Where neco's keys are: etcd://HOST:PORT,..., or sqlite:PATH."`
	LRN      string `placeholder:"N" help:"This boot server's logical rack number; default: what /etc/neco/rack holds."`
	Dir      string `default:"/var/lib/neco" placeholder:"DIR" type:"path" help:"The worker's own folder."`
	Services string `placeholder:"PROGRAM" type:"path" help:"Run this program as systemctl is run (start, restart, stop, is-active, and a unit); default: this machine's systemd."`
	Metrics  string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address."`
}

const necoWorkerSummary = `Does one boot server's part in updates, until it is told to stop (SIGTERM): installs the version that is
asked for, hands over to it, then updates one component after the other, in step with the other servers.

Examples:
  neco-worker --state etcd://10.0.0.3:2379,10.0.1.3:2379
  neco-worker --state sqlite:/srv/neco.db --lrn 0 --dir /tmp/worker`

// runNecoWorker is neco-worker.
func runNecoWorker(c call) int {
	var g necoWorkerGrammar
	return daemon(c, console.Command{Name: "neco-worker", Summary: necoWorkerSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveWorker(ctx, d, g)
	})
}

// serveWorker is the process of a boot server's worker.
func serveWorker(ctx context.Context, d daemonParts, g necoWorkerGrammar) (err error) {
	lrn, err := g.lrn()
	if err != nil {
		return err
	}
	manifest, version, err := ownManifest()
	if err != nil {
		return err
	}
	server, err := host.New(g.host(lrn))
	if err != nil {
		return err
	}
	sums, err := host.Sums(g.Dir, "/proc/self/exe", version)
	if err != nil {
		slog.Warn("cannot tell what this program was installed from; its plan decides", "error", err)
	}
	slog.Info("works for a boot server", "lrn", lrn, "version", version)
	metrics := &updater.WorkerMetrics{}
	stop, err := serveMetrics(g.Metrics, metrics)
	if err != nil {
		return err
	}
	defer stop()
	store, err := openKeys(ctx, g.State)
	if err != nil {
		return err
	}
	claimant, err := newClaimant(g.Dir)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	err = updater.RunWorker(ctx, updater.WorkerOptions{
		Store: store, LRN: lrn, Claimant: claimant, Version: version, Sums: sums, Manifest: manifest, Dir: g.Dir, Server: server,
		Install: installer(server, g.Dir), Mend: mender(server, manifest, ownPackage(g.Dir, version)), Metrics: metrics, Ready: d.manager.ready,
	})
	err = errors.Join(err, store.Close())
	if errors.Is(err, updater.ErrHandOver) {
		return successor{}
	}
	return err
}

// mender removes what others than the manifest's release have left behind, and finishes
// an installation that a power cut has left half-way, where releases come as packages.
func mender(server *host.Host, manifest release.Manifest, own string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := server.Tidy(manifest)
		if binary, unknown := self(); unknown != nil {
			err = errors.Join(err, unknown)
		} else if host.Form(binary) == release.Deb {
			err = errors.Join(err, server.Mend(ctx, own))
		}
		return err
	}
}

// ownPackage is where the worker before this one has put this version's package, if it did.
func ownPackage(dir, version string) string {
	v, err := release.ParseVersion(version)
	if err != nil {
		return ""
	}
	return filepath.Join(releasesDir(dir), release.AssetName(release.Deb, v, runtime.GOARCH))
}

// releasesDir is where releases are brought to, in the worker's folder.
func releasesDir(dir string) string { return filepath.Join(dir, "releases") }

// lrn is this server's number.
func (g necoWorkerGrammar) lrn() (int, error) {
	if g.LRN != "" {
		lrn, err := record.ParseLRN(g.LRN)
		if err != nil {
			return 0, console.Usage(err)
		}
		return lrn, nil
	}
	lrn, err := host.LRN()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, console.Hint(console.Usage(errors.New("it is not said which boot server this is")), "give --lrn N, or write N to "+host.RackFile)
	}
	return lrn, err
}

// host are the options of this server's hands.
func (g necoWorkerGrammar) host(lrn int) host.Options {
	o := host.Options{LRN: lrn, Dir: g.Dir}
	if g.Services != "" {
		o.Services = host.ServiceCommand{Path: g.Services}
	}
	return o
}

// ownManifest is what this program brings to boot servers, and which version it
// is: the manifest beside the executable says so, or else the one that is built in.
func ownManifest() (release.Manifest, string, error) {
	binary, err := self()
	if err != nil {
		return release.Manifest{}, "", err
	}
	file := filepath.Join(filepath.Dir(binary), "manifest.yaml")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		m, err := release.DefaultManifest()
		return m, Version, err
	}
	if err != nil {
		return release.Manifest{}, "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	m, err := release.ReadManifest(file, data)
	if err == nil {
		m, err = m.For(runtime.GOARCH)
	}
	return m, or(m.Version, Version), err
}

// installer brings releases to this server.
func installer(server *host.Host, dir string) func(ctx context.Context, r record.Request, c record.Config) error {
	return func(ctx context.Context, r record.Request, c record.Config) error {
		binary, err := self()
		if err != nil {
			return err
		}
		source, err := release.NewSource(c)
		if err != nil {
			return err
		}
		defer source.Close()
		if err := reach(ctx, source); err != nil {
			return err
		}
		form := host.Form(binary)
		wanted := release.Wanted{Version: r.Version, Sums: r.Sums, Form: form, Arch: runtime.GOARCH, Dir: releasesDir(dir)}
		if err := host.Sweep(wanted.Dir, r.Version); err != nil {
			return err
		}
		file, err := source.Fetch(ctx, wanted)
		if err != nil {
			return err
		}
		return server.InstallRelease(ctx, host.Package{Form: form, File: file, Version: r.Version, Sums: r.Sums}, binary)
	}
}

// The tries to reach the source of releases, whose faults and rate limits pass.
const (
	sourceTries = 8
	sourceDelay = time.Minute // at most, unless the source says otherwise
)

// reach asks the source until it answers.
func reach(ctx context.Context, source *release.Source) error {
	doing := activity.Begin(ctx, "asks where releases are")
	defer doing.End()
	for n := 1; ; n++ {
		_, err := source.Releases(ctx)
		if err == nil || n == sourceTries {
			return err
		}
		delay := release.Delay(err, n, sourceDelay, time.Now())
		slog.Warn("the source of releases does not answer as it should", "error", err, "again", delay)
		doing.Say("asks where releases are, again and again: %v", err)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openKeys opens neco's keys, and bears with a store that is away.
func openKeys(ctx context.Context, url string) (store *state.Keyspace, err error) {
	err = outlast(ctx, func() (err error) { store, err = updater.OpenStore(ctx, url); return err })
	return store, err
}

// serveMetrics answers Prometheus until stop is called; at no address, nothing.
func serveMetrics(address string, m io.WriterTo) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = m.WriteTo(w) // whoever hangs up does not read it
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { // until stop
		defer close(done)
		_ = s.Serve(l)
	}()
	return func() { _ = s.Close(); <-done }, nil
}

// successor is the error of a worker whose executable is another one now.
type successor struct{}

func (successor) Error() string { return "goes on as the version that was installed" }

// exec makes this process what lies at its executable's path now. It returns only
// if that fails.
func (successor) exec() error {
	path, err := self()
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("cannot go on as the version that was installed: %w", err)
}
