package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// guard lets in whoever has opened the link that the terminal shows.
type guard struct {
	next           http.Handler
	cookie         string // its name, with the port, since cookies are a host's
	token, session string // what the link and the cookie hold
}

func newGuard(next http.Handler, port string) guard {
	return guard{next, "bijou-dashboard-" + port, rand.Text(), rand.Text()}
}

// ServeHTTP refuses what no browser of the operator's would ask.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	cookie, err := r.Cookie(g.cookie)

	switch token := r.FormValue("token"); {
	case !isLoopback(hostOf(r)): // somebody else's name that leads here
		http.Error(w, "this page is served as localhost and 127.0.0.1 only", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page changes nothing", http.StatusMethodNotAllowed)
	case token != "" && equal(token, g.token):
		g.admit(w)
	case err != nil || !equal(cookie.Value, g.session):
		http.Error(w, "open the link that the terminal shows in which the dashboard runs", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// admit gives a browser the cookie, and a page that leads on: where a link elsewhere has redirected it, it
// would keep a strict cookie back.
func (g guard) admit(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name:     g.cookie,
		Value:    g.session,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})

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

// equal takes the same time whatever differs.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
