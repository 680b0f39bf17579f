package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/state/constraints"
)

// fake is a provider that behaves for each machine as the machine's placement says.
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
		// The file shows that the call has been cancelled after the end of the client.
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

// echo formats a spec, with the values of its pointers.
func echo(s provider.Spec) string {
	return fmt.Sprintf("%s %s %s %d %q %s %s %s", s.Machine, s.Series, s.Tools, *s.Constraints.Mem, *s.Constraints.Tags, s.Token, s.Placement, s.Instance)
}

// begun reports whether this is its first call.
func (f fake) begun() bool {
	return os.Mkdir(filepath.Join(f.env.Dir, "begun"), 0o700) == nil
}

func (fake) Stop(context.Context, string) error { return nil }

// Instances returns one instance: this process.
func (f fake) Instances(ctx context.Context) ([]provider.Instance, error) {
	switch f.env.Config["instances"] {
	case "hang":
		<-ctx.Done()
		select {}
	case "large":
		return []provider.Instance{{ID: strings.Repeat("x", maxAnswer)}}, nil
	case "deadline":
		if _, ok := ctx.Deadline(); ok {
			return nil, errors.New("it is told a deadline")
		}
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

// settings is a fake's environment, which a test can change while the fake runs.
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

// pid returns the identity of the fake's process.
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
