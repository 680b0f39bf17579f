package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v74/github"

	"bijou/updater/record"
)

// Source is where releases are published: a repository behind GitHub's API, as
// the configuration says. It remembers what it was answered, so keep one as long
// as the configuration stays. It is for one goroutine at a time.
type Source struct {
	config record.Config
	owner  string
	name   string
	client *github.Client
	http   *http.Client // for files, which are not kept

	inspected map[string]inspectedPackage // by all that it depends on
}

// ErrNoRepository is the error of NewSource when no repository is configured.
var ErrNoRepository = errors.New("no repository is configured")

// listTimeout bounds one listing of the releases; silenceTimeout is how long a server may
// keep silent.
const (
	listTimeout    = 2 * time.Minute
	silenceTimeout = 30 * time.Second
)

// NewSource returns the source that the configuration names. It returns ErrNoRepository
// if there is none.
func NewSource(c record.Config) (*Source, error) {
	if c.SourceFault != "" {
		return nil, fmt.Errorf("cannot tell where releases come from: %s", c.SourceFault)
	}

	owner, name, ok := strings.Cut(c.GitHubRepository, "/")
	if !ok {
		return nil, ErrNoRepository
	}
	files, err := NewClient(c.Proxy)
	if err != nil {
		return nil, err
	}

	client := github.NewClient(&http.Client{Transport: &etagCache{
		next:      files.Transport,
		responses: map[string]cachedResponse{},
	}})

	if c.GitHubToken != "" {
		client = client.WithAuthToken(c.GitHubToken)
	}

	// A host whose name does not say that it is the API's is an Enterprise's, with the API below /api/v3/.
	client, err = client.WithEnterpriseURLs(c.GitHubURL, c.GitHubURL)
	if err != nil {
		return nil, fmt.Errorf("cannot use github-url: %w", err)
	}

	return &Source{
		config:    c,
		owner:     owner,
		name:      name,
		client:    client,
		http:      files,
		inspected: map[string]inspectedPackage{},
	}, nil
}

// NewClient returns a client for anything but GitHub's API, through the proxy; "" is the
// one that the environment names, if any.
func NewClient(proxy string) (*http.Client, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: silenceTimeout,
		TLSHandshakeTimeout: silenceTimeout, ResponseHeaderTimeout: silenceTimeout, MaxIdleConnsPerHost: 2, DisableCompression: true,
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

// Close closes idle connections.
func (s *Source) Close() { s.http.CloseIdleConnections() }

// Releases lists all releases, of all pages. Faults and rate limits are errors: Delay
// returns when to ask again.
func (s *Source) Releases(ctx context.Context) ([]Release, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all []Release
	page := &github.ListOptions{PerPage: 100}

	for {
		found, resp, err := s.client.Repositories.ListReleases(ctx, s.owner, s.name, page)
		if err != nil {
			return nil, fmt.Errorf("cannot list the releases of %s/%s: %w", s.owner, s.name, err)
		}

		for _, r := range found {
			all = append(all, s.convertRelease(r))
		}
		if resp.NextPage <= page.Page {
			return all, nil
		}
		page.Page = resp.NextPage
	}
}

// convertRelease takes the files' addresses at the API if there is a token, since it serves those
// of private repositories, too; else their public addresses, which the rate limit does not count.
func (s *Source) convertRelease(r *github.RepositoryRelease) Release {
	one := Release{Tag: r.GetTagName(), Draft: r.GetDraft(), PreRelease: r.GetPrerelease()}
	for _, a := range r.Assets {
		address := a.GetBrowserDownloadURL()
		if s.config.GitHubToken != "" && a.GetURL() != "" {
			address = a.GetURL()
		}
		one.Assets = append(one.Assets, Asset{Name: a.GetName(), URL: address, Size: int64(a.GetSize())})
	}

	return one
}

// The shortest and the longest time after which a source that failed is asked again.
const (
	minDelay = time.Second
	maxDelay = time.Hour
)

// Delay returns how long to leave the source alone after its n-th failure in a row, from 1: until
// the rate limit's end where that is known, else longer each time, up to longest.
func Delay(err error, n int, longest time.Duration, now time.Time) time.Duration {
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		return min(max(limit.Rate.Reset.Sub(now), minDelay), maxDelay)
	}
	if abuse, ok := errors.AsType[*github.AbuseRateLimitError](err); ok && abuse.RetryAfter != nil {
		return min(max(*abuse.RetryAfter, minDelay), maxDelay)
	}

	return max(minDelay, min(minDelay<<min(max(n, 1)-1, 12), longest))
}

// maxCachedSize bounds a cached response, in bytes.
const maxCachedSize = 8 << 20

// etagCache keeps responses that carry an ETag, and returns them again when the server
// answers 304. GitHub does not count such requests against the rate limit.
type etagCache struct {
	next http.RoundTripper

	mu        sync.Mutex
	responses map[string]cachedResponse // by URL
}

type cachedResponse struct {
	etag   string
	header http.Header
	body   []byte
}

func (c *etagCache) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.next.RoundTrip(r)
	}

	key := r.URL.String()
	c.mu.Lock()
	known, ok := c.responses[key]
	c.mu.Unlock()
	if ok {
		r = r.Clone(r.Context())
		r.Header.Set("If-None-Match", known.etag)
	}

	resp, err := c.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case ok && resp.StatusCode == http.StatusNotModified:
		return known.revive(resp), nil
	case resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != "":
		return c.store(key, resp)
	}

	return resp, nil
}

// revive keeps what the 304 says of the rate limit.
func (a cachedResponse) revive(resp *http.Response) *http.Response {
	resp.Body.Close()
	header := a.header.Clone()
	maps.Copy(header, resp.Header)
	header.Del("Content-Length")

	if link := a.header.Get("Link"); link != "" {
		header.Set("Link", link)
	}
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header, resp.ContentLength = header, int64(len(a.body))
	resp.Body = io.NopCloser(bytes.NewReader(a.body))
	return resp
}

// store does not cache a response that is too long or was cut short.
func (c *etagCache) store(key string, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCachedSize+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if len(body) > maxCachedSize {
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, nil
	}

	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responses[key] = cachedResponse{etag: resp.Header.Get("ETag"), header: resp.Header.Clone(), body: body}
	return resp, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
