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
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"bijou/state/osutil"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Options configure one boot server.
type Options struct {
	Dir      string   // its folder on the disk; made if it is not there
	Services Services // nil: this machine's systemd
	Program  string   // the executable that releases replace; "": not known
	// HealthTimeout is how long any component may take to be healthy after its start; 0: as its manifest says.
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
	config         atomic.Pointer[record.Config]
	directClient   *http.Client // never through a proxy
}

// New creates the server's folder.
func New(o Options) (*Host, error) {
	for _, d := range []string{"components", "downloads"} {
		if err := osutil.MkdirAll(filepath.Join(o.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
		}
	}

	h := &Host{
		dir:           o.Dir,
		services:      o.Services,
		program:       o.Program,
		healthTimeout: o.HealthTimeout,
		dpkgLock:      make(chan struct{}, 1),
	}

	h.directClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := h.Configure(record.Config{}); err != nil {
		return nil, err
	}

	if h.services == nil {
		h.services = Systemd{}
	}
	return h, nil
}

// Configure applies the configuration to all work that begins from now on. It may be called at any time.
func (h *Host) Configure(c record.Config) error {
	h.commandTimeout.Store(int64(cmp.Or(c.WorkerTimeout/3, defaultTimeout)))
	client, err := release.NewClient(c.Proxy)
	if err != nil {
		return err
	}

	h.downloadClient.Store(client)
	h.config.Store(&c)
	return nil
}
