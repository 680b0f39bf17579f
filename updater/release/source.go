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

// Publisher is a place where releases are published. [NewSource] uses the configured one. Only one goroutine
// at a time may use a Publisher. All errors that the place itself causes are a [SourceError], whose Kind
// classifies them.
type Publisher interface {
	// Releases lists all releases in no particular order, including drafts and incomplete releases. For an
	// error, [Delay] returns how long to wait before the next try.
	Releases(ctx context.Context) ([]Release, error)

	// Read returns a file of at most 1 MiB. It retries as long as a retry can help.
	Read(ctx context.Context, a Asset) ([]byte, error)

	// Fetch downloads a file to the path and verifies its sum. If it fails, it leaves no file at the path. It
	// retries as long as a retry can help. After an interruption, another call continues the download.
	Fetch(ctx context.Context, a Asset, path string, sum [sha256.Size]byte) error

	// Close closes idle connections.
	Close()
}

// Source reads releases from the configured place. It verifies them with their sums, signature and plan. It
// caches the place's answers, so keep one Source as long as the configuration stays the same. Only one
// goroutine at a time may use a Source.
type Source struct {
	Publisher
	config record.Config
	http   *http.Client // for files on other web servers

	inspected map[string]inspectedPackage // the key contains everything that the result depends on
}

// ErrNoRepository is returned by [NewSource] if no source of releases is configured.
var ErrNoRepository = errors.New("no source of releases is configured")

const (
	// listTimeout limits one listing of the releases.
	listTimeout = 2 * time.Minute
	// silenceTimeout is how long a server can be silent.
	silenceTimeout = 30 * time.Second
)

// NewSource returns the configured source of releases. It returns ErrNoRepository if no source is configured,
// and a [SourceError] if the configuration of the source is invalid.
func NewSource(c record.Config) (*Source, error) {
	switch {
	case c.SourceFault != "":
		err := fmt.Errorf("cannot find out where releases come from: %s", c.SourceFault)
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

// newSource returns the configured source: a directory or GitHub.
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

// NewClient returns an HTTP client that uses the proxy. If proxy is "", the client uses the proxy that the
// process's environment names, if any. NewClient returns an error if proxy is not a URL.
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

const (
	// maxSourceTries is how often Await queries the source for a release.
	maxSourceTries = 8
	// maxSourceDelay limits the delay between these tries, unless the source requests a longer one.
	maxSourceDelay = time.Minute
)

// Await returns the release of the given version. If the source fails, or does not have the release, Await
// tries again, up to maxSourceTries times in all, since a release may become visible to one server later than
// to others. After the last try, it returns that try's error.
func (s *Source) Await(ctx context.Context, version string) (Release, error) {
	doing := activity.Begin(ctx, "looks for the release")
	defer doing.End()

	for try := 1; ; try++ {
		r, err := s.lookup(ctx, version)
		if err == nil {
			return r, nil
		}
		if try == maxSourceTries {
			return r, err
		}

		delay := Delay(err, try, maxSourceDelay, time.Now())
		slog.Warn("the source of releases gives no valid answer", "error", err, "again", delay)
		doing.Say("looks for the release, and retries: %v", err)
		if err := backoff.Sleep(ctx, delay); err != nil {
			return Release{}, err
		}
	}
}

// lookup lists the releases, and returns the release of the given version.
func (s *Source) lookup(ctx context.Context, version string) (Release, error) {
	all, err := s.Releases(ctx)
	if err != nil {
		return Release{}, err
	}

	return Lookup(version, s.config.TagPrefix, all)
}
