package release

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// maxAnswer is how long an answer may be to be kept, in bytes.
const maxAnswer = 8 << 20

// conditional asks a server again only for what has changed: answers that carry
// an ETag are kept, and given again when the server says 304. GitHub does not
// count such requests against the rate limit.
type conditional struct {
	next http.RoundTripper

	mu   sync.Mutex
	kept map[string]answer // by URL
}

// answer is one that was kept.
type answer struct {
	etag   string
	header http.Header
	body   []byte
}

func (c *conditional) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.next.RoundTrip(r)
	}
	key := r.URL.String()
	c.mu.Lock()
	known, ok := c.kept[key]
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
		return known.again(resp), nil
	case resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != "":
		return c.keep(key, resp)
	}
	return resp, nil
}

// again is the kept answer in place of a 304, with what that says of the rate limit.
func (a answer) again(resp *http.Response) *http.Response {
	resp.Body.Close()
	header := a.header.Clone()
	for name, value := range resp.Header {
		header[name] = value
	}
	header.Del("Content-Length")
	if link := a.header.Get("Link"); link != "" {
		header.Set("Link", link)
	}
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header, resp.ContentLength = header, int64(len(a.body))
	resp.Body = io.NopCloser(bytes.NewReader(a.body))
	return resp
}

// keep reads the answer and keeps it, unless it is too long or was cut short.
func (c *conditional) keep(key string, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if len(body) > maxAnswer {
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[key] = answer{etag: resp.Header.Get("ETag"), header: resp.Header.Clone(), body: body}
	return resp, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
