package nspawn

import (
	"os/exec"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

// testTree returns the tree that test hosts boot from, and its series.
func testTree(t *testing.T) (tree, series string) {
	t.Helper()
	need.Long(t)
	fleet.Need(t)
	tree, err := fleet.Tree()
	if err == nil {
		series, err = provider.SeriesOf(tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree, series
}

func TestProvider(t *testing.T) {
	tree, series := testTree(t)
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		p, err := New(provider.Environment{UUID: "e0a1", Name: "test", Dir: t.TempDir(), Config: map[string]string{"tree": tree}})
		if err != nil {
			t.Fatal(err)
		}
		return providertest.Fixture{Provider: p, Series: series, Crash: func(t *testing.T, id string) { crash(t, p, id) }}
	})
}

// crash kills a container's init, and waits until the whole container is gone.
func crash(t *testing.T, p *Provider, id string) {
	t.Helper()
	if err := exec.Command("sh", "-c", `kill -9 $(pgrep -P $(pgrep -f -- "^systemd-nspawn .*--machine=`+id+` "))`).Run(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, await.Poll{Limit: time.Minute}, "the container is gone", func() string {
		runs, err := p.manager.isRunning(id)
		return await.Unless(err == nil && !runs, "it goes on: %v", err)
	})
}
