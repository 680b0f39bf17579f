package host

import (
	"net/http"
	"net/url"
	"time"
)

// NewClient makes a client for downloads, which may take long once they have
// begun, but not to begin.
func NewClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = proxy
	t.ResponseHeaderTimeout = time.Minute
	return &http.Client{Transport: t}
}
