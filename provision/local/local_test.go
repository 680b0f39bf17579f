package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
)

// TestMain lets this binary act as a machine agent that only locks its directory.
func TestMain(m *testing.M) {
	if os.Args[0] != "machine-agent" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hold, err := process.Take(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer hold.Release()
	<-ctx.Done()
}

func fixture(t *testing.T) providertest.Fixture {
	dir := t.TempDir()
	p := New(Options{Dir: dir, Agent: func(spec provider.Spec) (process.Detached, error) {
		folder := filepath.Join(dir, spec.Machine)
		return process.Detached{
			Path: "/proc/self/exe", Args: []string{"machine-agent", folder}, Log: filepath.Join(folder, "agent.log"),
		}, nil
	}})
	return providertest.Fixture{Provider: p, Crash: func(t *testing.T, instance string) {
		agent, err := process.Holder(filepath.Join(dir, strings.TrimPrefix(instance, idPrefix)))
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Stop(t.Context(), agent, 0); err != nil {
			t.Fatal(err)
		}
	}}
}

func TestProvider(t *testing.T) { providertest.Run(t, fixture) }

func TestStartRefusesIDs(t *testing.T) {
	f := fixture(t)
	for _, id := range []string{"", "0", "..", "1/2", "a"} {
		if _, err := f.Provider.Start(t.Context(), provider.Spec{Machine: id}, io.Discard); err == nil {
			t.Errorf("machine %q was started", id)
		}
		if err := f.Provider.Stop(t.Context(), id); err == nil {
			t.Errorf("machine %q was stopped", id)
		}
	}
}

// TestBadEntries checks that other machines are listed despite an unreadable record, and that the machine of
// this record can be started and stopped. Files that do not belong to a machine are ignored.
func TestBadEntries(t *testing.T) {
	dir := t.TempDir()
	agent := func(spec provider.Spec) (process.Detached, error) {
		folder := filepath.Join(dir, spec.Machine)
		return process.Detached{Path: "/proc/self/exe", Args: []string{"machine-agent", folder}, Log: filepath.Join(folder, "agent.log")}, nil
	}
	p := New(Options{Dir: dir, Environment: "e1", Agent: agent})
	for _, id := range []string{"1", "2"} {
		if _, err := p.Start(t.Context(), provider.Spec{Machine: id, Environment: "e1"}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2/instance.json", "{")
	write("3", "a file")
	if err := os.MkdirAll(filepath.Join(dir, "lost+found", "instance.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := []provider.Instance{
		{ID: "local-1", Environment: "e1", Machine: "1", Running: true}, {ID: "local-2", Environment: "e1", Machine: "2", Running: true},
	}
	for _, act := range []func() error{
		func() error { return nil },
		func() error {
			_, err := p.Start(t.Context(), provider.Spec{Machine: "2", Environment: "e1"}, io.Discard)
			return err
		},
	} {
		if err := act(); err != nil {
			t.Error(err)
		}
		found, err := p.Instances(t.Context())
		if diff := cmp.Diff(want, found); diff != "" || err != nil {
			t.Error(err, diff)
		}
		write("2/instance.json", "{")
	}
	for _, i := range want {
		if err := p.Stop(t.Context(), i.ID); err != nil {
			t.Error(err)
		}
	}
	if found, err := p.Instances(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("left: %+v, error %v", found, err)
	}
}

func TestStartTellsOfAgentThatEnds(t *testing.T) {
	p := New(Options{Dir: t.TempDir(), Agent: func(provider.Spec) (process.Detached, error) {
		return process.Detached{Path: "/bin/false", Args: []string{"false"}, Log: os.DevNull}, nil
	}})
	if _, err := p.Start(t.Context(), provider.Spec{Machine: "1"}, io.Discard); err == nil || !strings.Contains(err.Error(), "at once") {
		t.Errorf("error %v", err)
	}
}
