package charmsource

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Proxy has the proxies for requests to a store. With the zero Proxy, the process's environment variables,
// such as HTTPS_PROXY, choose the proxies.
type Proxy struct {
	HTTP  string // URL
	HTTPS string // URL
	None  string // hosts without a proxy, separated by commas: names, domains, addresses, networks or *
}

// choose returns a function that chooses the proxy of each request, for http.Transport. If p has no URL, the process's
// environment variables choose, and p.None has no effect. choose returns an error if a URL of p is invalid.
func (p Proxy) choose() (func(*http.Request) (*url.URL, error), error) {
	if p.HTTP == "" && p.HTTPS == "" {
		return http.ProxyFromEnvironment, nil
	}

	// As in environment variables, the scheme http:// can be left out. p is a copy, so the change stays here.
	for _, text := range []*string{&p.HTTP, &p.HTTPS} {
		if *text != "" && !strings.Contains(*text, "://") {
			*text = "http://" + *text
		}
	}
	for _, text := range []string{p.HTTP, p.HTTPS} {
		u, err := url.Parse(text)
		if err != nil || text != "" && u.Host == "" {
			return nil, fmt.Errorf("invalid proxy %q: want a URL like http://proxy.example:3128", text)
		}
	}

	return func(req *http.Request) (*url.URL, error) {
		// Without a proxy for https, the proxy for http also serves https.
		text := cmp.Or(p.HTTPS, p.HTTP)
		if req.URL.Scheme == "http" {
			text = p.HTTP
		}
		if text == "" || p.skips(req.URL.Hostname()) {
			return nil, nil // without a proxy
		}
		return url.Parse(text)
	}, nil
}

// skips reports whether requests to the host bypass the proxy. This is true for localhost, for loopback
// addresses, for hosts that p.None contains, for hosts below its domains, and for addresses in its networks. If
// p.None contains *, it is true for all hosts.
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
