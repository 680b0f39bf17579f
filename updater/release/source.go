package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"bijou/state/backoff"
	"bijou/updater/activity"
	"bijou/updater/record"
)

// Publisher is a place where releases are published. [NewSource] makes the one that the configuration
// names. It is for one goroutine at a time. All errors that are the place's own are a [SourceError],
// which says of what kind they are.
type Publisher interface {
	// Releases lists all releases in no certain order, also drafts and those that are not complete.
	// Once it returns an error, [Delay] says when to ask again.
	Releases(ctx context.Context) ([]Release, error)

	// Read returns a file of at most 1 MiB. It tries again while that may help.
	Read(ctx context.Context, a Asset) ([]byte, error)

	// Fetch brings a file to the path, whole and with that sum, or leaves nothing there. It tries
	// again while that may help. A call that was cut short can be repeated, and goes on.
	Fetch(ctx context.Context, a Asset, path string, sum [sha256.Size]byte) error

	// Close closes idle connections.
	Close()
}

// Source reads the releases of one place, which the configuration names. It checks them against their sums,
// signature and plan. It remembers the place's answers, so keep one Source as long as the configuration
// stays. One goroutine at a time may use it.
type Source struct {
	Publisher
	config record.Config
	http   *http.Client // for files of other servers

	inspected map[string]inspectedPackage // by all that it depends on
}

// ErrNoRepository is the error of NewSource when no source of releases is configured.
var ErrNoRepository = errors.New("no source of releases is configured")

// listTimeout bounds one listing of the releases; silenceTimeout is how long a server may
// keep silent.
const (
	listTimeout    = 2 * time.Minute
	silenceTimeout = 30 * time.Second
)

// NewSource returns the source that the configuration names. It returns ErrNoRepository if there is none,
// and a [SourceError] if the configuration of the source is invalid.
func NewSource(c record.Config) (*Source, error) {
	switch {
	case c.SourceFault != "":
		err := fmt.Errorf("cannot tell where releases come from: %s", c.SourceFault)
		return nil, SourceError{Kind: Misconfigured, Err: err}
	case !c.HasSource():
		return nil, ErrNoRepository
	}

	source, err := newSource(c)
	if err != nil {
		return nil, SourceError{Kind: Misconfigured, Err: err}
	}

	return source, nil
}

// newSource returns the configured source of releases: a directory, or GitHub.
func newSource(c record.Config) (*Source, error) {
	client, err := NewClient(c.Proxy)
	if err != nil {
		return nil, err
	}

	var publisher Publisher
	if c.ReleaseFolder != "" {
		publisher, err = newFolder(c, client)
	} else {
		publisher, err = newGitHub(c, client)
	}
	if err != nil {
		return nil, err
	}

	return &Source{
		Publisher: publisher,
		config:    c,
		http:      client,
		inspected: map[string]inspectedPackage{},
	}, nil
}

// NewClient returns a client for anything but GitHub's API, through the proxy; "" is the
// one that the environment names, if any.
func NewClient(proxy string) (*http.Client, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		IdleConnTimeout:       silenceTimeout,
		TLSHandshakeTimeout:   silenceTimeout,
		ResponseHeaderTimeout: silenceTimeout,
		MaxIdleConnsPerHost:   2,
		DisableCompression:    true,
	}

	if proxy == "" {
		return &http.Client{Transport: t}, nil
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return nil, fmt.Errorf("cannot use proxy: %w", err)
	}

	t.Proxy = http.ProxyURL(u)
	return &http.Client{Transport: t}, nil
}

// The tries to reach the source of releases, whose faults and rate limits pass.
const (
	maxSourceTries = 8
	maxSourceDelay = time.Minute // at most, unless the source says otherwise
)

// Await returns the release of that version. While the source does not answer as it should, or does
// not have the release, it asks again, for some minutes: a server may see a release later than others.
func (s *Source) Await(ctx context.Context, version string) (Release, error) {
	doing := activity.Begin(ctx, "asks where releases are")
	defer doing.End()

	for n := 1; ; n++ {
		r, err := s.lookup(ctx, version)
		if err == nil || n == maxSourceTries {
			return r, err
		}

		delay := Delay(err, n, maxSourceDelay, time.Now())
		slog.Warn("the source of releases does not answer as it should", "error", err, "again", delay)
		doing.Say("asks where releases are, again and again: %v", err)
		if err := backoff.Sleep(ctx, delay); err != nil {
			return Release{}, err
		}
	}
}

func (s *Source) lookup(ctx context.Context, version string) (Release, error) {
	all, err := s.Releases(ctx)
	if err != nil {
		return Release{}, err
	}

	return Lookup(version, s.config.TagPrefix, all)
}
