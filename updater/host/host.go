// Package host carries out updates on one boot server. It runs systemd units, installs packages, archives and
// container images, checks the health of components, and uploads contents to sabakan.
//
// Every call can be repeated. If a call is interrupted by a kill, a power cut or a cancelled context, a
// repeated call continues its work. The package does not handle other servers' workers, barriers or the
// store, and does not decide on the order of steps. Package worker does.
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

// Options are the settings of a Host.
type Options struct {
	Dir      string   // the worker's directory, which is created if it is missing
	Services Services // nil for this host's systemd
	Program  string   // the executable that releases replace, or "" if it is unknown
	// HealthTimeout is how long each component can take to become healthy after its start. If it is 0, the
	// manifest decides.
	HealthTimeout time.Duration
}

// Host is one boot server. Only one goroutine at a time can call methods that change the server, except
// FinishInstallation. All other methods can be called at any time.
type Host struct {
	dir           string
	services      Services
	program       string
	healthTimeout time.Duration
	dpkgLock      chan struct{} // buffered: holds a token while dpkg is running
	installBegun  atomic.Bool   // this process has begun to install a package

	commandTimeout atomic.Int64                // the configured timeout of a component's command
	downloadClient atomic.Pointer[http.Client] // uses the configured proxy
	config         atomic.Pointer[record.Config]
	directClient   *http.Client // uses no proxy
}

// New returns a Host, and creates the Host's directory if it is missing. Without o.Services, the Host uses systemd.
func New(o Options) (*Host, error) {
	for _, d := range []string{"components", "downloads"} {
		if err := osutil.MkdirAll(filepath.Join(o.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the worker's directory: %w", err)
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
	// These are the defaults until the caller has read the configuration.
	if err := h.Configure(record.Config{}); err != nil {
		return nil, err
	}

	if h.services == nil {
		h.services = Systemd{}
	}
	return h, nil
}

// Configure applies the configuration to all work that begins later. It can be called at any time. If the proxy
// is not a URL, it returns an error and applies only the timeout of commands.
func (h *Host) Configure(c record.Config) error {
	// Both tries of a command that hangs must fit into the timeout of the worker.
	h.commandTimeout.Store(int64(cmp.Or(c.WorkerTimeout/3, defaultTimeout)))
	client, err := release.NewClient(c.Proxy)
	if err != nil {
		return err
	}

	h.downloadClient.Store(client)
	h.config.Store(&c)
	return nil
}
