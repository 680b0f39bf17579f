package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Options are of one boot server.
type Options struct {
	LRN      int
	Dir      string       // its folder on the disk; made if it is not there
	Services Services     // nil: this machine's systemd
	Client   *http.Client // for downloads; nil: the default one
	// Patience is how long a component may take to be well after its start;
	// default five minutes.
	Patience time.Duration
}

// Host is one boot server. It is for one goroutine at a time.
type Host struct {
	lrn      int
	dir      string
	services Services
	client   *http.Client
	patience time.Duration
}

// New makes the server's folder.
func New(o Options) (*Host, error) {
	for _, d := range []string{"components", "downloads"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
		}
	}
	h := &Host{lrn: o.LRN, dir: o.Dir, services: o.Services, client: o.Client, patience: o.Patience}
	if h.services == nil {
		h.services = Systemd{}
	}
	if h.client == nil {
		h.client = http.DefaultClient
	}
	if h.patience == 0 {
		h.patience = 5 * time.Minute
	}
	return h, nil
}

// every is how often something is looked at that tells nobody when it changes.
const every = 200 * time.Millisecond

// until looks again and again until ok says yes or fails, or ctx is done.
func until(ctx context.Context, ok func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// limited tells if it was the limit set here that ended ctx, not its caller.
func limited(outer, inner context.Context) bool {
	return outer.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded)
}
