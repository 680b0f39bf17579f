package provision

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/fakes/dummy"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestMain lets this binary act also as a provisioner with the dummy provider.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "provision" {
		if err := provisionAlone(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// provisionAlone is the main function of a provisioner that runs as a separate process.
func provisionAlone(url, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st, err := state.Open(ctx, url)
	if err != nil {
		return err
	}
	defer st.Close()
	return Run(ctx, Options{State: st, Provider: dummy.New(dir), Log: slog.New(slog.DiscardHandler)})
}

// overStores runs a test over each store that processes can share.
func overStores(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "state.db")) })
	t.Run("etcd", func(t *testing.T) { test(t, etcdtest.For(t, etcdtest.Options{}).URL("/provisioner")) })
}

// fleet is an environment whose provisioners are separate processes.
type fleet struct {
	t     *testing.T
	state *state.State
	dummy *dummy.Provider
	dir   string
	url   string
}

func newFleet(t *testing.T, url string) *fleet {
	t.Helper()
	env := state.Environment{Name: "e", UUID: "u", Provider: dummy.Name, DefaultSeries: "noble"}
	if err := state.Create(t.Context(), url, env); err != nil {
		t.Fatal(err)
	}
	st, err := state.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	dir := t.TempDir()
	return &fleet{t: t, state: st, dummy: dummy.New(dir), dir: dir, url: url}
}

// spawn starts a provisioner, which ends with the test at the latest.
func (f *fleet) spawn() *exec.Cmd {
	f.t.Helper()
	c := exec.Command("/proc/self/exe", "provision", f.url, f.dir)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { f.kill(c) })
	return c
}

// kill ends a provisioner as a power cut would. It is idempotent.
func (f *fleet) kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

func (f *fleet) add(n int) {
	f.t.Helper()
	if _, err := f.state.AddMachines(f.t.Context(), n, state.Machine{}); err != nil {
		f.t.Fatal(err)
	}
}

// await waits until the instances of all machines are recorded.
func (f *fleet) await(limit time.Duration) {
	f.t.Helper()
	await.Until(f.t, await.Poll{Limit: limit, Pause: 20 * time.Millisecond}, "all instances are recorded", func() string {
		without := f.without()
		return await.Unless(len(without) == 0, "without an instance: %v", without)
	})
}

func (f *fleet) without() (ids []string) {
	f.t.Helper()
	err := f.state.View(f.t.Context(), func(v *state.View) error {
		machines, err := v.Machines()
		ids = nil
		for _, m := range machines {
			if m.InstanceID == "" {
				ids = append(ids, m.ID)
			}
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return ids
}

// wantOnce checks that each machine's instance was created exactly once, by any provisioner.
func (f *fleet) wantOnce(machines int) {
	f.t.Helper()
	starts, err := f.dummy.Starts()
	if err != nil || len(starts) != machines {
		f.t.Errorf("instances were made for %d tokens, error %v; want %d", len(starts), err, machines)
	}
	for token, n := range starts {
		if n != 1 {
			f.t.Errorf("%d instances were made for token %s", n, token)
		}
	}
}

// takeover is three times the 15 s within which another provisioner must lead.
const takeover = 45 * time.Second

// TestTakeover runs two provisioners. The first is killed between a start and the record of the instance, and
// the second continues. The second is killed in the middle of starts, and a third continues.
func TestTakeover(t *testing.T) {
	need.Whole(t)
	overStores(t, func(t *testing.T, url string) {
		f := newFleet(t, url)
		err := dummy.Give(f.dir, dummy.Orders{Start: map[string]dummy.StartOrder{"5": {Crash: 1}, "*": {Pause: 20 * time.Millisecond}}})
		if err != nil {
			t.Fatal(err)
		}
		f.add(20)
		a, b := f.spawn(), f.spawn()
		f.await(takeover)
		f.wantOnce(20)
		if err := dummy.Give(f.dir, dummy.Orders{Start: map[string]dummy.StartOrder{"*": {Pause: 200 * time.Millisecond}}}); err != nil {
			t.Fatal(err)
		}
		f.add(20)
		f.awaitSome(21)
		f.kill(a)
		f.kill(b)
		began := time.Now()
		f.spawn()
		f.await(takeover)
		t.Logf("a new provisioner was done %s after the old one was killed", time.Since(began))
		f.wantOnce(40)
	})
}

// awaitSome waits until n instances have been created.
func (f *fleet) awaitSome(n int) {
	f.t.Helper()
	await.Until(f.t, await.Poll{Limit: takeover, Pause: 5 * time.Millisecond}, fmt.Sprintf("%d instances are made", n), func() string {
		starts, err := f.dummy.Starts()
		if err != nil {
			f.t.Fatal(err)
		}
		return await.Unless(len(starts) >= n, "only %d were made", len(starts))
	})
}
