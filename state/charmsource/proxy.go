package charmsource

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Proxy says through what a store is asked. The zero Proxy is what the process's environment says.
type Proxy struct {
	HTTP  string // URL
	HTTPS string // URL
	None  string // hosts that are asked directly, with commas: names, domains, addresses, *
}

// choose returns the proxy of each request, as http.Transport takes it.
func (p Proxy) choose() (func(*http.Request) (*url.URL, error), error) {
	if p.HTTP == "" && p.HTTPS == "" {
		return http.ProxyFromEnvironment, nil
	}

	for _, text := range []*string{&p.HTTP, &p.HTTPS} {
		if *text != "" && !strings.Contains(*text, "://") {
			*text = "http://" + *text
		}
	}
	for _, text := range []string{p.HTTP, p.HTTPS} {
		if u, err := url.Parse(text); err != nil || text != "" && u.Host == "" {
			return nil, fmt.Errorf("invalid proxy %q: want a URL like http://proxy.example:3128", text)
		}
	}

	return func(req *http.Request) (*url.URL, error) {
		text := cmp.Or(p.HTTPS, p.HTTP)
		if req.URL.Scheme == "http" {
			text = p.HTTP
		}
		if text == "" || p.skips(req.URL.Hostname()) {
			return nil, nil
		}
		return url.Parse(text)
	}, nil
}

// skips reports whether requests to the host go past the proxy: those to this host itself, and those that
// p.None names.
func (p Proxy) skips(host string) bool {
	address := net.ParseIP(host)
	if host == "localhost" || address != nil && address.IsLoopback() {
		return true
	}

	for word := range strings.SplitSeq(p.None, ",") {
		word = strings.TrimPrefix(strings.TrimSpace(word), ".")
		_, network, err := net.ParseCIDR(word)
		switch {
		case word == "":
			continue
		case word == "*", host == word, strings.HasSuffix(host, "."+word):
			return true
		case err == nil && address != nil && network.Contains(address):
			return true
		}
	}
	return false
}
