package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
)

// guard lets in browsers that have opened the link that the terminal shows. A link is good for one browser:
// once it was used, another one takes its place.
type guard struct {
	next   http.Handler
	cookie string // its name, with the port, since cookies are a host's
	// used, unless it is nil, is called with the token of the next link when a link was used.
	used func(token string)

	mu       sync.Mutex
	token    string // what the link holds
	sessions map[string]bool
}

func newGuard(next http.Handler, port string) *guard {
	return &guard{
		next:     next,
		cookie:   "bijou-dashboard-" + port,
		token:    rand.Text(),
		sessions: map[string]bool{},
	}
}

// ServeHTTP serves requests that the operator's own browser can have sent, and refuses all others.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	known := g.knows(r)

	switch token := r.FormValue("token"); {
	case !isLoopback(hostOf(r)): // somebody else's name that leads here
		http.Error(w, "this page is served as localhost and 127.0.0.1 only", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page changes nothing", http.StatusMethodNotAllowed)
	case token != "" && known:
		leadOn(w) // the same browser has opened its link again
	case token != "" && r.Method == http.MethodGet && g.admit(w, token):
		leadOn(w)
	case token != "":
		http.Error(w, "this link was used already, or is of another dashboard: "+
			"open the last link that the terminal shows", http.StatusForbidden)
	case !known:
		http.Error(w, "open the last link that the terminal shows in which the dashboard runs", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// knows reports whether the request has the cookie of a browser that was admitted.
func (g *guard) knows(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookie)
	if err != nil {
		return false
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	known := false
	for session := range g.sessions {
		known = equal(cookie.Value, session) || known
	}

	return known
}

// admit gives a browser its cookie if the token is that of the link. The link works only once.
func (g *guard) admit(w http.ResponseWriter, token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !equal(token, g.token) {
		return false
	}

	session := rand.Text()
	g.sessions[session] = true
	g.token = rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name:     g.cookie,
		Value:    session,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	if g.used != nil {
		g.used(g.token)
	}

	return true
}

// leadOn answers with a page that opens the dashboard. Where a link elsewhere has redirected the browser, it
// would keep a strict cookie back from a redirection.
func leadOn(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><meta http-equiv="refresh" content="0;url=/"><link rel="icon" href="/icon.svg"><title>dashboard</title><a href="/">dashboard</a>`))
}

// hostOf returns the host that the browser takes this one for.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
}

func setHeaders(h http.Header) {
	h.Set(
		"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	)

	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// equal compares two texts in a time that does not depend on where they differ.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
