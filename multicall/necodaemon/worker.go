// Package necodaemon has the daemons of boot servers, neco-updater and neco-worker. The packages
// updater/leader and updater/worker do their work.
package necodaemon

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/neco"
	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/host"
	"bijou/updater/leader"
	"bijou/updater/record"
	"bijou/updater/release"
	"bijou/updater/worker"
)

//go:embed help
var helpFiles embed.FS

type necoWorkerGrammar struct {
	State    string `required:"" env:"NECO_STATE" placeholder:"URL" help:"Use neco's keys in this store: etcd://HOST:PORT,..., or sqlite:PATH."`
	LRN      string `placeholder:"N" help:"Serve as the boot server with logical rack number N; default: the number in /etc/neco/rack."`
	Dir      string `default:"/var/lib/neco" placeholder:"DIR" type:"path" help:"Keep the worker's files in this directory."`
	Services string `placeholder:"PROGRAM" type:"path" help:"Run this program instead of systemctl (start, restart, stop or is-active, and a unit); default: this machine's systemd."`
	Metrics  string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address."`
}

// RunWorker runs the applet neco-worker.
func RunWorker(c applet.Call) int {
	var g necoWorkerGrammar
	return daemon.Run(c, console.Command{Name: "neco-worker", Grammar: &g, Help: helpFiles}, g.serve)
}

// serve runs the worker for this boot server and this binary, until ctx is done or a different binary must continue.
func (g *necoWorkerGrammar) serve(ctx context.Context, d daemon.Daemon) error {
	options, err := g.newOptions()
	if err != nil {
		return err
	}
	options.Metrics = metrics.NewRegistry()
	options.Ready = d.Notifier.NotifyReady

	return runWithStore(ctx, g.State, g.Metrics, options.Metrics, func(store *keyspace.Space) error {
		claimant, err := daemon.NewClaimant(g.Dir)
		if err != nil {
			return err
		}

		// With Moved, the worker keeps its claim when its directory was moved on this host.
		claimant.Moved = daemon.MovedTo(claimant.Folder)
		options.Claimant = claimant
		options.Store = store
		return worker.Run(ctx, options)
	})
}

// newOptions returns the worker's options that depend only on the flags, this host and this binary.
func (g *necoWorkerGrammar) newOptions() (o worker.Options, err error) {
	lrn, err := g.rackNumber()
	if err != nil {
		return o, err
	}

	manifest, version, err := OwnManifest()
	if err != nil {
		return o, err
	}
	binary, err := applet.ExecutablePath()
	if err != nil {
		return o, err
	}

	server, err := g.newHost(binary)
	if err != nil {
		return o, err
	}
	sums, err := host.InstalledSums(g.Dir, "/proc/self/exe", version)
	if err != nil {
		// sums is then empty, which the worker takes as unknown.
		slog.Warn("cannot find out which release this program was installed from; its plan decides", "error", err)
	}
	packageKind := release.Package{Form: host.InstalledForm(binary), Arch: runtime.GOARCH}
	slog.Info("works for a boot server", "lrn", lrn, "version", version)

	return worker.Options{
		LRN:                lrn,
		Version:            version,
		Sums:               sums,
		Package:            packageKind.String(),
		Manifest:           manifest,
		Dir:                g.Dir,
		Server:             server,
		Install:            newInstaller(server, g.Dir),
		FinishInstallation: newFinisher(server, manifest, ownPackage(g.Dir, version)),
	}, nil
}

// newHost returns this host as the boot server. binary is the worker's program.
func (g *necoWorkerGrammar) newHost(binary string) (*host.Host, error) {
	options := host.Options{Dir: g.Dir, Program: binary}
	if g.Services != "" {
		options.Services = host.ServiceCommand{Path: g.Services}
	}
	return host.New(options)
}

// runWithStore waits until the store answers, and then calls f with the store. It serves metrics at
// metricsAddress until f ends. While f runs, it queries the store's servers once for their faults, and logs
// these faults. If f ends because a different executable was installed, runWithStore returns
// executableReexec. Otherwise it returns the errors of f and of closing the store.
func runWithStore(
	ctx context.Context,
	url, metricsAddress string,
	m *metrics.Registry,
	f func(store *keyspace.Space) error,
) error {
	stopMetrics, err := daemon.ServeMetrics(metricsAddress, m)
	if err != nil {
		return err
	}
	defer stopMetrics()

	var store *keyspace.Space
	err = daemon.RetryWhileAway(ctx, func() (err error) {
		store, err = updater.OpenStore(ctx, url)
		return err
	})
	if err != nil {
		return err
	}

	err = daemon.WhileAdvised(ctx, store, func() error { return f(store) })
	err = errors.Join(err, store.Close())
	if errors.Is(err, worker.ErrHandOver) || errors.Is(err, errReplaced) {
		// The new executable continues the work even if the store could not be closed.
		return executableReexec{}
	}

	return err
}

// newFinisher returns a function that cleans up after an earlier worker. The function removes downloads for
// releases other than that of the manifest. If this program was installed as a Debian package, it also
// finishes an installation that a power failure has interrupted. packagePath is the path of this version's
// package, or "" if there is none.
func newFinisher(server *host.Host, manifest release.Manifest, packagePath string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		// Finish the installation even if downloads cannot be removed.
		removeErr := server.RemoveOldDownloads(manifest)
		binary, err := applet.ExecutablePath()
		if err != nil {
			return errors.Join(removeErr, err)
		}

		if host.InstalledForm(binary) == release.Deb {
			err = server.FinishInstallation(ctx, packagePath)
		}
		return errors.Join(removeErr, err)
	}
}

// ownPackage returns the path at which the previous worker may have kept the package of version. It returns "" if
// version is not the version of a release, since then there is no package. dir is the worker's directory.
func ownPackage(dir, version string) string {
	v, err := release.ParseVersion(version)
	if err != nil {
		return ""
	}
	return filepath.Join(releasesDir(dir), release.AssetName(release.Deb, v, runtime.GOARCH))
}

// releasesDir returns the directory for downloaded packages in the worker's directory.
func releasesDir(dir string) string { return filepath.Join(dir, "releases") }

// rackNumber returns the boot server's logical rack number (LRN) from the flag, or from this host's file.
func (g *necoWorkerGrammar) rackNumber() (int, error) {
	if g.LRN != "" {
		lrn, err := record.ParseLRN(g.LRN)
		if err != nil {
			return 0, console.Usage(err)
		}
		return lrn, nil
	}

	lrn, err := host.LRN()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, console.Hint(console.Usage(errors.New("no LRN given")),
			"give --lrn N, or write N to "+host.RackFile)
	}

	return lrn, err
}

// OwnManifest returns the manifest beside the executable, with the files for this program's architecture. If
// there is no such manifest, it returns the built-in one. It also returns this program's version: the version
// in the manifest beside the executable or, without such a version, [applet.Version].
func OwnManifest() (release.Manifest, string, error) {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return release.Manifest{}, "", err
	}

	file := filepath.Join(filepath.Dir(binary), "manifest.yaml")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		m, err := release.DefaultManifest()
		return m, applet.Version, err
	}
	if err != nil {
		return release.Manifest{}, "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	m, err := release.ReadManifest(file, data)
	if err != nil {
		return m, cmp.Or(m.Version, applet.Version), err
	}

	m, err = m.ForArch(runtime.GOARCH)
	return m, cmp.Or(m.Version, applet.Version), err
}

// newInstaller returns a function that fetches the release of a request, and replaces this binary with it. dir is the
// worker's directory.
func newInstaller(server *host.Host, dir string) func(ctx context.Context, r record.Request, c record.Config) error {
	return func(ctx context.Context, r record.Request, c record.Config) error {
		binary, err := applet.ExecutablePath()
		if err != nil {
			return err
		}

		source, err := release.NewSource(c)
		if err != nil {
			return err
		}
		defer source.Close()

		// Only wait, since the release may become visible to this server later than to others. FetchPackage looks
		// it up again.
		if _, err := source.Await(ctx, r.Version); err != nil {
			return err
		}

		// Fetch the release in the form in which this program was installed. Make room for it first.
		wanted := release.Wanted{
			Version: r.Version,
			Sums:    r.Sums,
			Form:    host.InstalledForm(binary),
			Arch:    runtime.GOARCH,
			Dir:     releasesDir(dir),
		}
		if err := host.RemoveOtherReleases(wanted.Dir, r.Version); err != nil {
			return err
		}
		file, err := source.FetchPackage(ctx, wanted)
		if err != nil {
			return err
		}

		return server.InstallRelease(ctx,
			host.Package{Form: wanted.Form, File: file, Version: r.Version, Sums: r.Sums}, binary)
	}
}

// executableReexec is the [daemon.Reexec] that continues with the executable at this process's path.
type executableReexec struct{}

func (executableReexec) Error() string { return "continues as the version that was installed" }

// Exec replaces this process with the executable at its path, with the same arguments. It returns only if it fails.
func (executableReexec) Exec() error {
	path, err := applet.ExecutablePath()
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("cannot continue as the version that was installed: %w", err)
}

// Server returns this host, as its daemons see it, for neco's commands.
func Server() neco.Server {
	diagnose := func(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error) {
		h, err := host.New(host.Options{Dir: dir})
		if err != nil {
			return nil, err
		}
		return h.Diagnose(ctx, m), nil
	}

	return neco.Server{LRN: host.LRN, Diagnose: diagnose, Journal: host.Journal, Notify: leader.Notify}
}
