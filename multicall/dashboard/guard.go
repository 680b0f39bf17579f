package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
)

// guard admits browsers that have opened the link that the terminal shows. A link works for only one browser.
// Once the link has been used, a new link replaces it.
type guard struct {
	next   http.Handler
	cookie string // the cookie's name, which has the port, since all ports of a host share cookies
	// used is called with the token of the next link when a link has been used. It can be nil.
	used func(token string)

	mu       sync.Mutex
	token    string // the token of the current link
	sessions map[string]bool
}

// newGuard returns a guard in front of the handler next. port is the port of the page.
func newGuard(next http.Handler, port string) *guard {
	return &guard{
		next:     next,
		cookie:   "bijou-dashboard-" + port,
		token:    rand.Text(),
		sessions: map[string]bool{},
	}
}

// ServeHTTP serves requests of admitted browsers, and admits a browser that opens the current link. It refuses all
// other requests. It serves only GET and HEAD, and only as localhost or a loopback address.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	isKnown := g.knows(r)

	token := r.FormValue("token")
	switch {
	case !isLoopback(hostOf(r)):
		// The name of another site leads to this host, as in DNS rebinding.
		http.Error(w, "this page is served only as localhost or 127.0.0.1", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page is read-only", http.StatusMethodNotAllowed)
	case token != "":
		g.serveLink(w, r, token, isKnown)
	case !isKnown:
		http.Error(w, "open the last link in the dashboard's terminal", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// serveLink answers a request for a link with a token. It admits the browser if the link has not been used yet. An
// admitted browser, for which isKnown is true, can open any link again.
func (g *guard) serveLink(w http.ResponseWriter, r *http.Request, token string, isKnown bool) {
	isAdmitted := isKnown
	// A HEAD request does not use up the link.
	if !isKnown && r.Method == http.MethodGet {
		isAdmitted = g.admit(w, token)
	}
	if !isAdmitted {
		http.Error(w, "this link has been used already, or is from another dashboard: "+
			"open the last link in the dashboard's terminal", http.StatusForbidden)
		return
	}

	// The browser then opens the page itself, whose address has no token.
	sendRefresh(w)
}

// knows reports whether the request has the cookie of an admitted browser.
func (g *guard) knows(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookie)
	if err != nil {
		return false
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	// Compare with all sessions, so that the time does not depend on which session matches.
	isKnown := false
	for session := range g.sessions {
		isKnown = equal(cookie.Value, session) || isKnown
	}

	return isKnown
}

// admit gives a browser its cookie if the token is that of the current link, and returns false otherwise. A link
// works only once: admit replaces it, and calls g.used with the token of the next link.
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

// sendRefresh answers with a page that opens the dashboard. It does not redirect, since a browser that has followed a
// link from a different site would not send a strict cookie after a redirection.
func sendRefresh(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// If this fails, the browser is gone, and nobody needs the page.
	_, _ = w.Write([]byte(`<!doctype html><meta http-equiv="refresh" content="0;url=/"><link rel="icon" href="/icon.svg"><title>dashboard</title><a href="/">dashboard</a>`))
}

// hostOf returns the name or address of this host that the browser has used in its request, without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
}

// setHeaders sets the headers that keep other sites and caches away from the page.
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
