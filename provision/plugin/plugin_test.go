package plugin

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bijou/provision/local"
	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
)

// TestMain lets this binary act as a provider, or as a machine agent that only locks its directory, depending
// on its name.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	switch {
	case name == "machine-agent":
		hold()
	case name == Prefix+"local":
		exitOn(Serve(serveLocal))
	case name == Prefix+"fake":
		exitOn(Serve(serveFake))
	default:
		os.Exit(m.Run())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hold() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hold, err := process.Take(os.Args[1])
	exitOn(err)
	defer hold.Release()
	<-ctx.Done()
}

// serveLocal is the provider of local machines, whose agents only lock their directories.
func serveLocal(env provider.Environment) (provider.Provider, error) {
	return local.New(local.Options{Dir: env.Dir, Agent: func(spec provider.Spec) (process.Detached, error) {
		folder := filepath.Join(env.Dir, spec.Machine)
		return process.Detached{
			Path: "/proc/self/exe", Args: []string{"machine-agent", folder}, Log: filepath.Join(folder, "agent.log"),
		}, nil
	}}), nil
}

// linked returns a path to this binary under a provider's name.
func linked(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), Prefix+name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// sockets returns a function that returns a directory with a short path. The directory must be empty at
// the end of the test.
func sockets(t *testing.T) func() (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bijou-plugin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if len(left) != 0 || err != nil {
			t.Errorf("left behind: %v, error %v", left, err)
		}
		os.RemoveAll(dir)
	})
	return func() (string, error) { return dir, os.MkdirAll(dir, 0o700) }
}

// client returns a client of this binary under a provider's name.
func client(t *testing.T, name string, env provider.Environment) *Client {
	t.Helper()
	path := linked(t, name)
	c := NewClient(Options{
		Name: name, Sockets: sockets(t),
		Find:   func(string) (string, error) { return path, nil },
		Wanted: func(context.Context) (Wanted, error) { return Wanted{Environment: env}, nil },
	})
	t.Cleanup(c.Close)
	return c
}

// TestLocal runs the suite of providers against the provider of local machines in a separate process.
func TestLocal(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		dir := t.TempDir()
		c := client(t, "local", provider.Environment{UUID: "e0a1", Name: "test", Dir: dir})
		return providertest.Fixture{Provider: c, Crash: func(t *testing.T, instance string) {
			agent, err := process.Holder(filepath.Join(dir, strings.TrimPrefix(instance, "local-")))
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Stop(t.Context(), agent, 0); err != nil {
				t.Fatal(err)
			}
		}}
	})
}
