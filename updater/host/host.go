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
	"bijou/state/durable"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Options configure one boot server.
type Options struct {
	LRN      int
	Dir      string   // its folder on the disk; made if it is not there
	Services Services // nil: this machine's systemd
	// HealthTimeout is how long a component may take to be healthy after its start;
	// default five minutes.
	HealthTimeout time.Duration
}

// Host is one boot server. It is for one goroutine at a time, but for Configure and FinishInstallation.
type Host struct {
	lrn           int
	dir           string
	services      Services
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
	h := &Host{lrn: o.LRN, dir: o.Dir, services: o.Services, healthTimeout: o.HealthTimeout, dpkgLock: make(chan struct{}, 1)}
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
