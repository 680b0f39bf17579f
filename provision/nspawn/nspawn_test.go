package nspawn

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/provision/provider/providertest"
)

// testTree is the tree that testscripts/fleet/base makes; the test is skipped with one
// line if this machine cannot boot containers from it, or fails if
// BIJOU_TEST_REQUIRE names nspawn.
func testTree(t *testing.T) (tree, series string) {
	t.Helper()
	if os.Getenv("BIJOU_TEST_LONG") == "" {
		t.Skip("BIJOU_TEST_LONG is not set")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(cache, "bijou-test", "host-tree-1")
	series, err = seriesOf(tree)
	if err == nil {
		_, err = exec.LookPath("systemd-nspawn")
	}
	if err == nil && os.Geteuid() != 0 {
		err = os.ErrPermission
	}
	if err != nil && slices.Contains(strings.Split(os.Getenv("BIJOU_TEST_REQUIRE"), ","), "nspawn") {
		t.Fatalf("BIJOU_TEST_REQUIRE asks for nspawn: %v", err)
	} else if err != nil {
		t.Skipf("skip: no containers here: %v", err)
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

// crash kills a container's init, and waits until all of it is gone.
func crash(t *testing.T, p *Provider, id string) {
	t.Helper()
	if err := exec.Command("sh", "-c", `kill -9 $(pgrep -P $(pgrep -f -- "^systemd-nspawn .*--machine=`+id+` "))`).Run(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		runs, err := p.keeper.runs(id)
		if err == nil && !runs {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the container goes on: %v", err)
		}
	}
}
