package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
	"bijou/testscripts/kit/need"
)

// TestSample runs the suite of providers against the sample provider, a program that shares no code
// with bijou.
func TestSample(t *testing.T) {
	need.Whole(t)
	path := filepath.Join(t.TempDir(), Prefix+"sample")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../testscripts/fakes/sampleprovider"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the sample provider: %v\n%s", err, out)
	}
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		dir := t.TempDir()
		agent := filepath.Join(dir, "tools", "machine-agent")
		if err := os.MkdirAll(filepath.Dir(agent), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(agent, []byte("#!/bin/sh\nexec sleep 300\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		c := NewClient(Options{
			Name: "sample", Sockets: sockets(t),
			Find: func(string) (string, error) { return path, nil },
			Wanted: func(context.Context) (Wanted, error) {
				return Wanted{Environment: provider.Environment{UUID: "e0a1", Name: "test", Dir: dir}}, nil
			},
		})
		t.Cleanup(c.Close)
		return providertest.Fixture{Provider: c, Crash: func(t *testing.T, instance string) {
			i, err := process.ReadFile(filepath.Join(dir, "machines", strings.TrimPrefix(instance, "sample-"), "sample.pid"))
			if err == nil {
				err = process.Stop(t.Context(), i, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}
	})
}
