// Package dashboard serves a live page of an environment and boot servers to a browser on this
// host. See docs/how-to/dashboard.md.
//
// It does not change anything. Its callers pass the functions that describe units and boot servers in the
// words of their own commands. environment.go follows a model with its units, and fleet.go the boot servers.
package dashboard

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"bijou/multicall/console"
)

//go:embed static
var static embed.FS

// Flags are the flags of commands that serve the page.
type Flags struct {
	Listen string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Listen at this address of this host; port 0 is any free port. Default ${default}."`
	Open   bool   `help:"Also open the page in a browser."`
}

// Options are the options of [Serve].
type Options struct {
	Flags
	Streams     console.Streams
	Environment *Environment // nil to show no environment
	Fleet       *Fleet       // nil to show no boot servers
}

// server serves the page.
type server struct {
	Options
	templates *template.Template
	port      string
	began     time.Time // the origin of the timeline
}

// Serve prints the page's link, and serves the page until ctx is done. If o.Open is true, it also opens the page
// in a browser, and prints a warning if it cannot. It returns an error if it cannot begin or continue to serve the
// page.
func Serve(ctx context.Context, o Options) error {
	l, err := listen(ctx, o.Listen)
	if err != nil {
		return err
	}

	_, port, _ := net.SplitHostPort(l.Addr().String())
	s, err := newServer(o, port)
	if err != nil {
		return errors.Join(err, l.Close())
	}

	ctx, stop := context.WithCancel(ctx)
	g := newGuard(s.routes(), port)
	h := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}

	// This sets g.used, so it comes before h.Serve.
	firstLink, used := announceLinks(g, l.Addr(), o.Streams)

	// Deferred calls run in reverse order. stop must run before Wait, since the goroutines can wait for ctx.
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	running.Go(func() {
		if !o.Open {
			return
		}
		if err := openBrowser(ctx, firstLink, used); err != nil {
			fmt.Fprintf(o.Streams.Err, "warning: cannot open a browser: %v\n", err)
		}
	})

	running.Go(func() {
		<-ctx.Done()
		// Close does not wait for browsers that read a stream.
		_ = h.Close()
	})

	// Serve returns ErrServerClosed after h.Close, and a different error if it cannot continue.
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the page is no longer served: %w", err)
	}

	return nil
}

// announceLinks prints the page's first link to stdout. It sets g.used, so that stderr shows the next link
// whenever a browser has used a link. It returns the first link, and a channel that is closed once a browser has
// used a link.
func announceLinks(g *guard, address net.Addr, s console.Streams) (firstLink string, used <-chan struct{}) {
	link := func(token string) string { return fmt.Sprintf("http://%s/?token=%s", address, token) }
	firstLink = link(g.token)

	closed := make(chan struct{})
	closeOnce := sync.OnceFunc(func() { close(closed) })
	g.used = func(nextToken string) {
		closeOnce()
		fmt.Fprintf(s.Err, "the link has been used; for another browser: %s\n", link(nextToken))
	}

	fmt.Fprintln(s.Out, firstLink)
	return firstLink, closed
}

// listen opens the page's socket. It returns an error for an address that other hosts can reach.
func listen(ctx context.Context, address string) (net.Listener, error) {
	if err := checkAddress(address); err != nil {
		return nil, console.Usage(console.Hint(fmt.Errorf("cannot serve a page at %q: %w", address, err),
			"give an address of this host only, such as 127.0.0.1:8080; from a different host: ssh -L 8080:127.0.0.1:8080 HOST"))
	}

	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// checkAddress returns an error unless address is HOST:PORT and only this host can reach it.
func checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if !isLoopback(host) {
		return errors.New("other hosts could reach that address")
	}
	return nil
}

// isLoopback reports whether host is localhost or an IP address of this host only.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// openBrowser makes a browser open a file that leads to the link. The link is not an argument of the browser,
// since other users can see the arguments of a process. The file is in the home directory and not hidden, since a
// browser that is a snap sees neither /tmp nor hidden files. openBrowser returns once the link was used, or ctx is
// done, or with an error if it cannot open a browser. In each case it then removes the file.
func openBrowser(ctx context.Context, link string, used <-chan struct{}) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}

	file, err := os.CreateTemp(home, "bijou-dashboard-*.html") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())

	_, err = file.WriteString(`<meta http-equiv="refresh" content="0;url=` + link + `">`)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := exec.CommandContext(ctx, "xdg-open", file.Name()).Run(); err != nil {
		return err
	}

	select {
	case <-used:
	case <-ctx.Done():
	}

	return nil
}

// newServer returns the server of the page. port is the port on which it is served.
func newServer(o Options, port string) (*server, error) {
	t, err := template.New("").Funcs(templateFunctions()).ParseFS(static, "static/*.html")
	if err != nil {
		return nil, err
	}

	return &server{
		Options:   o,
		templates: t,
		port:      port,
		// The timeline also shows hooks of the last hour.
		began: time.Now().Add(-time.Hour).Truncate(time.Second),
	}, nil
}

// routes returns the handler of the page, its files, its streams and the details that a click opens.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, name := range []string{"page.js", "page.css", "icon.svg"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, static, "static/"+name)
		})
	}

	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		host, _ := os.Hostname()
		s.write(w, "page.html", map[string]any{
			"Environment": s.Environment,
			"Fleet":       s.Fleet,
			"Began":       s.began.UnixMilli(),
			"Port":        s.port,
			"Host":        host,
		})
	})

	if s.Fleet != nil {
		mux.HandleFunc("GET /fleet", func(w http.ResponseWriter, r *http.Request) {
			s.stream(w, r, &liveFleet{server: s})
		})
	}

	if s.Environment != nil {
		mux.HandleFunc("GET /environment", func(w http.ResponseWriter, r *http.Request) {
			s.stream(w, r, newLiveEnvironment(s))
		})
		mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
			s.stream(w, r, newLiveLog(s, r))
		})
		mux.HandleFunc("GET /detail", s.serveDetail)
	}

	return mux
}

// render returns the output of a template, without white space at its ends. It panics if the template fails, which is
// an internal error.
func (s *server) render(name string, data any) string {
	var b strings.Builder
	if err := s.templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("internal error: %v", err))
	}
	return strings.TrimSpace(b.String())
}

// write answers a request with a template.
func (s *server) write(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A failed write means that the browser is gone.
	_, _ = w.Write([]byte(s.render(name, data)))
}
