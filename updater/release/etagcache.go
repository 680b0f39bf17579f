package release

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
)

// maxCachedSize limits the size of a cached response, in bytes.
const maxCachedSize = 8 << 20

// etagCache keeps responses that have an ETag, and returns them again if the server answers 304. GitHub
// does not count such requests against the rate limit.
type etagCache struct {
	next http.RoundTripper

	mu        sync.Mutex
	responses map[string]cachedResponse // by URL
}

// cachedResponse is a complete response with status 200.
type cachedResponse struct {
	etag   string
	header http.Header
	body   []byte
}

// RoundTrip implements [http.RoundTripper]. It adds the ETag of the cached response to a GET request. If the
// server answers that the response has not changed, RoundTrip returns the cached one. It caches each response to a
// GET request that has status 200 and an ETag, and is not longer than maxCachedSize.
func (c *etagCache) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.next.RoundTrip(r)
	}

	key := r.URL.String()
	c.mu.Lock()
	cached, isCached := c.responses[key]
	c.mu.Unlock()
	if isCached {
		// A RoundTripper must not change its request.
		r = r.Clone(r.Context())
		r.Header.Set("If-None-Match", cached.etag)
	}

	resp, err := c.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case isCached && resp.StatusCode == http.StatusNotModified:
		return cached.revive(resp), nil
	case resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != "":
		return c.store(key, resp)
	}

	return resp, nil
}

// revive turns resp, a response with status 304, into the cached response. It keeps the headers of resp, such
// as the rate limit, except Content-Length, and Link if the cached response has one.
func (a cachedResponse) revive(resp *http.Response) *http.Response {
	resp.Body.Close()
	header := a.header.Clone()
	maps.Copy(header, resp.Header)
	// ContentLength is set below, from the cached body.
	header.Del("Content-Length")

	// The links to further pages come from the cached response, to which the body belongs.
	if link := a.header.Get("Link"); link != "" {
		header.Set("Link", link)
	}

	resp.StatusCode = http.StatusOK
	resp.Status = "200 OK"
	resp.Header = header
	resp.ContentLength = int64(len(a.body))
	resp.Body = io.NopCloser(bytes.NewReader(a.body))
	return resp
}

// store caches a response, unless the response is longer than maxCachedSize. It returns the response with its
// whole body.
func (c *etagCache) store(key string, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCachedSize+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if len(body) > maxCachedSize {
		// The bytes that were read come before the remaining bytes.
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

// readCloser reads from one value, and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// newETagClient returns a client that caches responses. It shares the connections of the client for files.
func newETagClient(files *http.Client) *http.Client {
	return &http.Client{Transport: &etagCache{next: files.Transport, responses: map[string]cachedResponse{}}}
}
