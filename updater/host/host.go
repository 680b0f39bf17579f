// Package host does the updater's work on one boot server: it runs systemd
// units, installs packages, archives and container images, checks the health of
// components, and uploads contents to sabakan.
//
// Every call can be repeated: whatever was cut short, by a kill, a power cut or a
// cancelled context, is gone on with by the same call. It knows nothing of
// other servers' workers, of barriers or of the store, and decides no order.
// Package multicall gives it to a worker as its Server; `neco diagnose` asks it.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"bijou/state/backoff"
	"bijou/state/digest"
	"bijou/state/durable"
	"bijou/state/jsonfile"
	"bijou/state/wrap"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Options configure one boot server.
type Options struct {
	Dir      string   // its folder on the disk; made if it is not there
	Services Services // nil: this machine's systemd
	Program  string   // the executable that releases replace; "": not known
	// HealthTimeout is how long a component may take to be healthy after its start;
	// default five minutes.
	HealthTimeout time.Duration
}

// Host is one boot server. It is for one goroutine at a time, but for Configure and FinishInstallation.
type Host struct {
	dir           string
	services      Services
	program       string
	healthTimeout time.Duration
	dpkgLock      chan struct{} // buffered: holds a token while dpkg is run
	installBegun  atomic.Bool   // a package was begun to be installed by this process

	commandTimeout atomic.Int64                // of a component's command, as the configuration says
	downloadClient atomic.Pointer[http.Client] // as the configuration says
	directClient   *http.Client                // never through a proxy
}

// New creates the server's folder.
func New(o Options) (*Host, error) {
	for _, d := range []string{"components", "downloads"} {
		if err := durable.MkdirAll(filepath.Join(o.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
		}
	}
	h := &Host{dir: o.Dir, services: o.Services, program: o.Program, healthTimeout: o.HealthTimeout, dpkgLock: make(chan struct{}, 1)}
	h.directClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := h.Configure(record.Config{}); err != nil {
		return nil, err
	}
	if h.services == nil {
		h.services = Systemd{}
	}
	if h.healthTimeout == 0 {
		h.healthTimeout = 5 * time.Minute
	}
	return h, nil
}

// Configure applies the configuration to whatever is begun from now on. It may be called
// at any time.
func (h *Host) Configure(c record.Config) error {
	h.commandTimeout.Store(int64(cmp.Or(c.WorkerTimeout/3, defaultTimeout)))
	client, err := release.NewClient(c.Proxy)
	if err == nil {
		h.downloadClient.Store(client)
	}
	return err
}

// The times between two looks at something that tells nobody when it changes: short at
// first, since most things take moments.
const (
	minPollInterval = 20 * time.Millisecond
	maxPollInterval = 320 * time.Millisecond
)

// poll calls ok until it is true or fails, or ctx is done.
func poll(ctx context.Context, ok func() (bool, error)) error {
	for gap := minPollInterval; ; gap = min(2*gap, maxPollInterval) {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		if backoff.Sleep(ctx, gap) != nil {
			return context.Cause(ctx)
		}
	}
}

// timedOut reports whether inner has run into its own limit, and not its caller's.
func timedOut(outer, inner context.Context) bool {
	return outer.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded)
}

// origin is the release that a program was installed from.
type origin struct {
	Version string `json:"version"`
	Sums    string `json:"sums"`              // the digest of the release's SHA256SUMS
	Program string `json:"program,omitempty"` // the program's own; "": the package brings none
}

// maxOrigins is how many are kept: of the program that is being installed, and of the one
// that runs until then.
const maxOrigins = 2

func originsFile(dir string) string { return filepath.Join(dir, "installed.json") }

// keepOrigin is called before the program is put to use: whatever is killed then, the
// program that runs finds out which of the origins is its own.
func (h *Host) keepOrigin(p Package, program string) error {
	all := []origin{{Version: p.Version, Sums: p.Sums}}
	var before []origin
	_, _ = jsonfile.Read(originsFile(h.dir), &before) // what cannot be read is replaced
	var err error
	if program != "" {
		all[0].Program, _, err = digest.OfFile(program)
	}
	if all = append(all, before...); err == nil {
		err = jsonfile.Write(originsFile(h.dir), all[:min(maxOrigins, len(all))])
	}
	return wrap.Error(err, "cannot write what is installed")
}

// InstalledSums returns the digest of the SHA256SUMS that a program of that version was installed
// by; "" if it was not installed by this worker or one before it.
func InstalledSums(dir, program, version string) (string, error) {
	var all []origin
	_, err := jsonfile.Read(originsFile(dir), &all)
	if err != nil || len(all) == 0 {
		return "", err
	}
	own, _, err := digest.OfFile(program)
	for _, o := range all {
		if err == nil && release.Same(o.Version, version) && (o.Program == own || o.Program == "") {
			return o.Sums, nil
		}
	}
	return "", err
}
