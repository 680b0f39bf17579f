package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/state/constraints"
)

// fake is a provider that does, for a machine, what that machine's placement says.
type fake struct{ env provider.Environment }

func serveFake(env provider.Environment) (provider.Provider, error) {
	switch env.Config["at-start"] {
	case "refuse":
		return nil, errors.New("there is no such region")
	case "hang":
		select {}
	case "crash":
		fmt.Fprintln(os.Stderr, "no room on the moon")
		os.Exit(3)
	}
	return fake{env}, nil
}

func (f fake) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: "fake", Isolated: true, Remote: true}, nil
}

func (f fake) Start(ctx context.Context, s provider.Spec, boot io.Writer) (provider.Instance, error) {
	switch s.Placement {
	case "busy":
		return provider.Instance{}, fmt.Errorf("no room for %s: %w", s.Machine, provider.ErrTransient)
	case "impossible":
		return provider.Instance{}, errors.New("no such place: 100% full")
	case "wait":
		fmt.Fprintln(boot, "waiting")
		<-ctx.Done()
		// It is told of the client's end, too.
		return provider.Instance{}, errors.Join(ctx.Err(), os.WriteFile(filepath.Join(f.env.Dir, "told"), nil, 0o600))
	case "crash once":
		if f.begun() {
			fmt.Fprintln(os.Stderr, "panic: the moon is down")
			os.Exit(4)
		}
	case "talk":
		fmt.Fprintf(boot, "one\r\ntwo\nthr\xffee")
	}
	return provider.Instance{
		ID: fmt.Sprintf("%+v", echo(s)), Environment: f.env.UUID, Machine: s.Machine, Running: true,
		Private: "10.0.0.1", Public: f.env.Config["name"],
	}, nil
}

// echo is a spec with what its pointers point at.
func echo(s provider.Spec) string {
	return fmt.Sprintf("%s %s %s %d %q %s %s %s", s.Machine, s.Series, s.Tools, *s.Constraints.Mem, *s.Constraints.Tags, s.Token, s.Placement, s.Instance)
}

// begun tells if it is the first time that it is asked.
func (f fake) begun() bool {
	return os.Mkdir(filepath.Join(f.env.Dir, "begun"), 0o700) == nil
}

func (fake) Stop(context.Context, string) error { return nil }

// Instances are one: this process.
func (f fake) Instances(ctx context.Context) ([]provider.Instance, error) {
	if f.env.Config["instances"] == "hang" {
		<-ctx.Done()
		select {}
	}
	return []provider.Instance{{ID: fmt.Sprint(os.Getpid()), Machine: os.Getenv(cookie)}}, nil
}

func fakeSpec(placement string) provider.Spec {
	mem, tags := uint64(2048), []string{}
	return provider.Spec{
		Machine: "7", Series: "noble", Tools: "1-2", Token: "t", Placement: placement, Instance: "i7",
		Constraints: constraints.Value{Mem: &mem, Tags: &tags},
	}
}

// settings are a fake's environment that may be changed while it runs.
type settings struct {
	mu  sync.Mutex
	env provider.Environment
}

func (s *settings) wanted(context.Context) (Wanted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Wanted{Environment: s.env}, nil
}

func (s *settings) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env.Config = map[string]string{key: value}
}

func fakeClient(t *testing.T, o Options, config map[string]string) (*Client, *settings) {
	t.Helper()
	path := linked(t, "fake")
	s := &settings{env: provider.Environment{UUID: "u", Name: "n", Dir: t.TempDir(), Config: config}}
	o.Name, o.Sockets, o.Wanted = "fake", sockets(t), s.wanted
	o.Find = func(string) (string, error) { return path, nil }
	c := NewClient(o)
	t.Cleanup(c.Close)
	return c, s
}

func TestStartCrosses(t *testing.T) {
	c, _ := fakeClient(t, Options{}, map[string]string{"name": "moon.example"})
	var boot bytes.Buffer
	got, err := c.Start(t.Context(), fakeSpec("talk"), &boot)
	want := provider.Instance{
		ID: `7 noble 1-2 2048 [] t talk i7`, Environment: "u", Machine: "7", Running: true, Private: "10.0.0.1", Public: "moon.example",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
	if diff := cmp.Diff("one\ntwo\nthr\uFFFDee\n", boot.String()); diff != "" {
		t.Error(diff)
	}
	caps, err := c.Capabilities(t.Context())
	if diff := cmp.Diff(provider.Capabilities{Name: "fake", Isolated: true, Remote: true}, caps); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
}

func TestErrorsKeepTheirText(t *testing.T) {
	c, _ := fakeClient(t, Options{}, nil)
	tests := []struct {
		placement, text string
		transient       bool
	}{
		{"busy", "no room for 7: try again later", true},
		{"impossible", "no such place: 100% full", false},
	}
	for _, tt := range tests {
		_, err := c.Start(t.Context(), fakeSpec(tt.placement), io.Discard)
		if err == nil || err.Error() != tt.text || errors.Is(err, provider.ErrTransient) != tt.transient {
			t.Errorf("%s: error %v", tt.placement, err)
		}
	}
}

// notice is a writer that tells of the first write.
type notice struct {
	once sync.Once
	seen chan struct{}
}

func (n *notice) Write(p []byte) (int, error) {
	n.once.Do(func() { close(n.seen) })
	return len(p), nil
}

func TestCancellationCrosses(t *testing.T) {
	c, s := fakeClient(t, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	n := &notice{seen: make(chan struct{})}
	go func() {
		<-n.seen
		cancel()
	}()
	if _, err := c.Start(ctx, fakeSpec("wait"), n); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	await(t, "the provider was told", func() bool {
		_, err := os.Stat(filepath.Join(s.env.Dir, "told"))
		return err == nil
	})
	if _, err := c.Instances(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestCrashedStartIsTransient(t *testing.T) {
	c, _ := fakeClient(t, Options{}, nil)
	_, err := c.Start(t.Context(), fakeSpec("crash once"), io.Discard)
	want := `provider "fake": it ended unexpectedly (exit status 4); it said: panic: the moon is down; it is started again`
	if err == nil || err.Error() != want || !errors.Is(err, provider.ErrTransient) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Start(t.Context(), fakeSpec("crash once"), io.Discard); err != nil {
		t.Errorf("the second start: %v", err)
	}
}

// pid is the process of the fake.
func pid(t *testing.T, c *Client) process.Identity {
	t.Helper()
	all, err := c.Instances(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("instances %v, error %v", all, err)
	}
	if all[0].Machine != "" {
		t.Error("the handshake is in the environment of what the provider starts")
	}
	var id int
	fmt.Sscan(all[0].ID, &id)
	i, err := process.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// TestKilledIsStartedAgain also has the folder of its socket gone, as when somebody clears
// temporary folders.
func TestKilledIsStartedAgain(t *testing.T) {
	c, _ := fakeClient(t, Options{}, nil)
	before := pid(t, c)
	dir, err := c.o.Sockets()
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "another answers", func() bool {
		_, err := c.Instances(t.Context())
		if err != nil && !errors.Is(err, provider.ErrTransient) { // who asks before its end is noticed is told so
			t.Fatal(err)
		}
		return err == nil && !before.Alive()
	})
	if after := pid(t, c); after == before {
		t.Error("it is the same process")
	}
}

func TestStoppedProcessIsGivenUp(t *testing.T) {
	c, _ := fakeClient(t, Options{}, map[string]string{"instances": "hang"})
	if _, err := c.Capabilities(t.Context()); err != nil { // it has begun, with all the time that it needs
		t.Fatal(err)
	}
	c.o.Patience = 100 * time.Millisecond
	_, err := c.Instances(t.Context())
	if err == nil || !strings.Contains(err.Error(), "it does not answer") || !errors.Is(err, provider.ErrTransient) {
		t.Errorf("error %v", err)
	}
}

func TestChangedSettingsTakeEffect(t *testing.T) {
	c, s := fakeClient(t, Options{}, nil)
	before := pid(t, c)
	if again := pid(t, c); again != before {
		t.Error("it was started again for nothing")
	}
	s.set("name", "new")
	if i, err := c.Start(t.Context(), fakeSpec(""), io.Discard); err != nil || i.Public != "new" {
		t.Errorf("instance %+v, error %v", i, err)
	}
	await(t, "the old process is gone", func() bool { return !before.Alive() })
}

func TestTroubleAtStart(t *testing.T) {
	for _, tt := range []struct {
		how, want string
		patience  time.Duration // for the process's begin, too
	}{
		{how: "refuse", want: `provider "fake": it does not start: there is no such region`},
		{how: "crash", want: `provider "fake": it does not start: it ended unexpectedly (exit status 3); it said: no room on the moon`},
		{how: "hang", want: `provider "fake": it does not start: it does not answer`, patience: 10 * time.Second},
	} {
		t.Run(tt.how, func(t *testing.T) {
			c, s := fakeClient(t, Options{Patience: tt.patience}, map[string]string{"at-start": tt.how})
			if _, err := c.Instances(t.Context()); err == nil || err.Error() != tt.want || !errors.Is(err, provider.ErrTransient) {
				t.Errorf("error %v", err)
			}
			s.set("at-start", "well")
			pid(t, c)
		})
	}
}

func TestWhatIsNoProvider(t *testing.T) {
	for _, tt := range []struct {
		want, script string
		patience     time.Duration
	}{
		{want: "it ended at its start (exit status 5); it said: cannot find my moon", script: "echo 'cannot find my moon' >&2; exit 5"},
		{want: "it did not begin within 2s", script: "exec sleep 60", patience: 2 * time.Second},
		{want: "it does not speak the providers' protocol (", script: "echo hello; exec sleep 60"},
		{want: "only unix sockets are for their owner alone", script: "echo '1|1|tcp|127.0.0.1:1|grpc|'; exec sleep 60"},
		{want: "it speaks another version of the protocol (", script: "echo '1|9|unix|/nowhere|grpc|'; exec sleep 60"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), Prefix+"odd")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			c := NewClient(Options{
				Name: "odd", Sockets: sockets(t), Patience: tt.patience,
				Find:   func(string) (string, error) { return path, nil },
				Wanted: func(context.Context) (Wanted, error) { return Wanted{}, nil },
			})
			defer c.Close()
			if _, err := c.Instances(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNothingIsStartedInVain(t *testing.T) {
	demand := Never
	c, _ := fakeClient(t, Options{Demand: func(context.Context) (Demand, error) { return demand, nil }}, nil)
	if all, err := c.Instances(t.Context()); err != nil || all != nil || c.current != nil {
		t.Errorf("instances %v, error %v, process %v", all, err, c.current)
	}
	demand = Present
	pid(t, c)
}

func TestClosedFails(t *testing.T) {
	c, _ := fakeClient(t, Options{}, nil)
	i := pid(t, c)
	c.Close()
	if i.Alive() {
		t.Error("its process lives")
	}
	if _, err := c.Instances(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("error %v", err)
	}
}
