package juju

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// testEnv is a BIJOU_HOME with fake background processes: Start announces machine 0, and Halt ends the
// announcement.
type testEnv struct {
	t     *testing.T
	home  home.Home
	parts Parts

	backgrounds  map[string]*background // by directory of the machine
	startErr     error
	exitsAtStart bool        // whether the started process prints nothing and ends
	about        func() bool // reports whether a different process is about to run machine 0 or to end; nil if there is no such process
	swept        []string
}

// background is a fake background process.
type background struct {
	state   *state.State
	session *state.Session
}

func newTestEnv(t *testing.T) *testEnv {
	t.Setenv("BIJOU_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("JUJU_ENV", "")
	t.Setenv("JUJU_REPOSITORY", "")
	w := &testEnv{t: t, home: home.Home{Dir: os.Getenv("BIJOU_HOME")}, backgrounds: map[string]*background{}}
	w.parts = Parts{
		Version: "9", Applets: []string{"bijou", "juju"}, HookTools: []string{"relation-get"},
		Processes: testAgents{w}, Claims: testAgents{w}, Owed: testAgents{w}.Owed, SweepTools: testAgents{w}.SweepTools, RemoveFiles: testAgents{w}.RemoveFiles, Services: noServices{}, OtherJuju: func() string { return "" }, Hooks: testHooks{w: w}, Providers: testProviders{},
	}
	t.Cleanup(func() {
		for dir := range w.backgrounds {
			if err := w.parts.Processes.Halt(context.Background(), dir, 0); err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

// testAgents starts fake background processes.
type testAgents struct{ *testEnv }

func (testAgents) Holder(dir string) (state.Holder, error) {
	return state.Holder{Host: "here", Folder: dir}, nil
}

func (testAgents) IsAlive(state.Holder) bool { return false }

func (testAgents) IsStopped(state.Holder) bool { return false }

func (testAgents) SweepTools(home.Environment, ...string) error { return nil }

func (testAgents) Owed(*state.View, string) (string, error) { return "", nil }

func (testAgents) RemoveFiles(home.Environment) error { return nil }

func (w testAgents) Start(e home.Environment) (alive func() bool, err error) {
	if w.startErr != nil {
		return nil, w.startErr
	}
	if w.exitsAtStart {
		return func() bool { return false }, os.WriteFile(e.LogFile("0"), []byte("cannot find a pen\n"), 0o600)
	}
	ctx := context.Background()
	s, err := state.Open(ctx, e.State)
	if err != nil {
		return nil, err
	}
	session, err := s.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	w.backgrounds[e.MachineDir("0")] = &background{s, session}
	return func() bool { return true }, state.Announce(ctx, session, s.Update, state.MachineAgent("0"))
}

func (w testAgents) Running(dir string) (int, error) {
	if w.backgrounds[dir] != nil {
		return 1234, nil
	}
	return 0, nil
}

func (w testAgents) Process(dir string) (int, error) {
	if w.about != nil && w.about() {
		return 77, nil
	}
	return w.Running(dir)
}

func (w testAgents) Halt(ctx context.Context, dir string, _ time.Duration) error {
	b := w.backgrounds[dir]
	if b == nil {
		return nil
	}
	delete(w.backgrounds, dir)
	return errors.Join(b.session.Close(ctx), b.state.Close())
}

type noServices struct{ Services }

func (noServices) Of(int) string { return "" }

func (noServices) AtBoot(home.Environment) (service string, starts bool) { return "", false }

// testHooks records the words by which the command finds and ends stray processes.
type testHooks struct {
	Hooks
	w *testEnv
}

func (h testHooks) EndStrays(_ context.Context, word string) error {
	h.w.swept = append(h.w.swept, word)
	return nil
}

// testProviders has the local provider, a second one whose machines are also on this host, and a remote
// one.
type testProviders struct{ Providers }

func (testProviders) CheckSettings(string, map[string]string) error { return nil }

func (testProviders) CheckSeries(_ home.Environment, _ state.Environment, series string) error {
	if series == "unmakeable" {
		return errors.New("this host has no keyring: apt-get install it")
	}
	return nil
}

func (testProviders) Inspect(_ context.Context, e home.Environment, _ map[string]string) (Provider, error) {
	switch e.Provider {
	case state.ProviderLocal:
		return Provider{}, nil
	case "near":
		return Provider{Isolated: true, SHA256: strings.Repeat("0", 64)}, nil
	case "far":
		return Provider{Isolated: true, Remote: true, SHA256: strings.Repeat("0", 64)}, nil
	}
	return Provider{}, console.Usage(fmt.Errorf("there is no provider %q", e.Provider))
}

func (testProviders) FreeInstances(context.Context, home.Environment, func(state.Steps)) error {
	return nil
}

// run runs a command with an answer on stdin.
func (w *testEnv) run(stdin string, args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	code = Main(ctx, console.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, w.parts, args)
	return code, out.String(), errs.String()
}

// mustRun runs a command that must succeed, and returns its stdout.
func (w *testEnv) mustRun(args ...string) string {
	w.t.Helper()
	code, out, errs := w.run("", args...)
	if code != 0 {
		w.t.Fatalf("juju %q: exit %d, %s", args, code, errs)
	}
	return out
}

// mustFail runs a command that must fail with the exit code and the text.
func (w *testEnv) mustFail(code int, text string, args ...string) {
	w.t.Helper()
	got, out, errs := w.run("", args...)
	if got != code || !strings.Contains(errs, "error: ") || !strings.Contains(errs, text) || out != "" {
		w.t.Errorf("juju %q: exit %d, want %d; stderr %q, want %q in it; stdout %q", args, got, code, errs, text, out)
	}
}

// writeCharm writes a charm and returns its directory.
func (w *testEnv) writeCharm(name, metadata string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), name)
	files := map[string]string{
		"metadata.yaml": "name: " + name + "\nsummary: s\n" + metadata,
		"config.yaml":   "options: {title: {type: string, default: Hello, description: d}}\n",
	}
	for file, text := range files {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}
