// Package dashboard is one page that shows an environment and boot servers, live, to a browser of
// this host: docs/how-to/dashboard.md.
//
// It changes nothing, and is told by juju and neco, which import it, what their words for things are.
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

// Flags are those of the commands that serve the page.
type Flags struct {
	Listen string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where on this host; port 0 is any that is free. Default ${default}."`
	Open   bool   `help:"Open it in a browser, too."`
}

// Options say what is shown, and where.
type Options struct {
	Flags
	Streams     console.Streams
	Environment *Environment // nil: none
	Fleet       *Fleet       // nil: none
}

// server serves the page.
type server struct {
	Options
	templates *template.Template
	port      string
	began     time.Time // the zero of the timeline
}

// Serve prints the page's link, and serves it until ctx is done.
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

	link := func(token string) string { return fmt.Sprintf("http://%s/?token=%s", l.Addr(), token) }
	first := link(g.token)
	used := make(chan struct{})
	closeUsed := sync.OnceFunc(func() { close(used) })
	g.used = func(token string) {
		closeUsed()
		fmt.Fprintf(o.Streams.Err, "the link was opened; for another browser: %s\n", link(token))
	}

	fmt.Fprintln(o.Streams.Out, first)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	running.Go(func() {
		if !o.Open {
			return
		}
		if err := openBrowser(ctx, first, used); err != nil {
			fmt.Fprintf(o.Streams.Err, "warning: cannot open a browser: %v\n", err)
		}
	})

	running.Go(func() {
		<-ctx.Done()
		_ = h.Close() // browsers that look on are not waited for
	})

	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the page any longer: %w", err)
	}

	return nil
}

// listen opens the page's socket. It refuses addresses that other hosts can reach.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !isLoopback(host) {
		err = errors.New("others can reach it")
	}
	if err != nil {
		return nil, console.Usage(console.Hint(fmt.Errorf("cannot serve a page at %q: %w", address, err),
			"it is for this host, as at 127.0.0.1:8080; elsewhere: ssh -L 8080:127.0.0.1:8080 HOST"))
	}

	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// openBrowser makes a browser open a file that leads to the link, since other users see the arguments of a
// process. The file stands in the home directory, under a name without a dot: a browser that is a snap sees
// neither /tmp nor hidden files. It is removed once the link was used, or ctx is done.
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

func newServer(o Options, port string) (*server, error) {
	t, err := template.New("").Funcs(templateFunctions()).ParseFS(static, "static/*.html")
	return &server{
		Options:   o,
		templates: t,
		port:      port,
		began:     time.Now().Add(-time.Hour).Truncate(time.Second),
	}, err
}

// routes returns the handler of the page, its files and its streams.
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

// render executes a template.
func (s *server) render(name string, data any) string {
	var b strings.Builder
	if err := s.templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("internal error: %v", err))
	}
	return strings.TrimSpace(b.String())
}

func (s *server) write(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(s.render(name, data))) // a browser that is gone needs no page
}
