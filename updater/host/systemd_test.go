package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
	"bijou/updater/host"
)

// TestOnAHost runs this binary's TestUnits on a host with its own systemd.
func TestOnAHost(t *testing.T) {
	need.Long(t)
	fleet.Need(t)
	h := fleet.New(t, 1).Host(0)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	path, err := h.Path("/opt/host.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	out, err := h.Exec("/opt/host.test", "-test.v", "-test.timeout=2m", "-test.run=^TestUnits$")
	t.Log(out)
	if err != nil || !strings.Contains(out, "--- PASS: TestUnits") {
		t.Error(err)
	}
}

// unit writes a unit file and makes systemd read it.
func unit(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile("/etc/systemd/system/"+name, []byte("[Service]\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "daemon-reload")
}

func systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %v: %v: %s", args, err, out)
	}
}

// comes waits until a unit is in one of the states.
func comes(t *testing.T, name string, states ...string) {
	t.Helper()
	await.Until(t, await.Poll{Limit: 30 * time.Second, Pause: 20 * time.Millisecond}, name+" changes its state", func() string {
		out, _ := exec.Command("systemctl", "show", "-p", "ActiveState", "--value", name).Output()
		said := strings.TrimSpace(string(out))
		return await.Unless(slices.Contains(states, said), "%s is %s, not %v", name, said, states)
	})
}

// TestUnits checks that a stopped unit does not run afterwards, even if it was about to start. The original
// neco could not stop a unit in "activating". A stopped unit is also held.
func TestUnits(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("this machine does not run systemd; TestOnAHost has one")
	}
	s := host.Systemd{}
	for name, text := range map[string]string{
		"silent.service":  "Type=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n",
		"pending.service": "ExecStartPre=/bin/sleep infinity\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n",
		"failing.service": "ExecStart=/bin/false\nRestart=always\nRestartSec=1h\n",
	} {
		unit(t, name, text)
		systemctl(t, "start", "--no-block", name)
		comes(t, name, "activating")
		if yes, err := s.IsActive(t.Context(), name); yes || err != nil {
			t.Errorf("%s is about to run, and is said to run: %v, %v", name, yes, err)
		}
		if err := s.Stop(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		comes(t, name, "inactive", "failed")
	}
	if err := s.Stop(t.Context(), "unknown.service"); err != nil {
		t.Errorf("one that is not known: %v", err)
	}
	held(t, s)
	detached(t, s)
}

// detached runs commands with RunDetached. A failed command must be reported as failed, even if its caller had
// already ended.
func detached(t *testing.T, s host.Systemd) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	fails := host.Detached{Name: "detached", Title: "fails", Command: []string{"/bin/sh", "-c", "echo half done; exit 3"}, Log: log}
	works := host.Detached{Name: "detached", Title: "works", Command: []string{"/bin/true"}, Log: log}
	abandon := func() {
		ctx, cancel := context.WithCancel(t.Context())
		slow := fails
		slow.Command = []string{"/bin/sh", "-c", "sleep 1; echo half done; exit 3"}
		ended := make(chan error)
		go func() { ended <- s.RunDetached(ctx, slow) }()
		comes(t, "detached.service", "activating")
		cancel()
		if err := <-ended; err == nil {
			t.Error("it was left, and has succeeded")
		}
	}
	joined := func(title string) host.Detached { d := works; d.Title, d.Join = title, true; return d }
	resumed := func(d host.Detached) host.Detached { d.Resume = true; return d }
	for _, c := range []struct {
		what   string
		before func()
		d      host.Detached
		fails  bool
	}{
		{"a failure", func() {}, fails, true},
		{"another try", func() {}, works, false},
		{"one that has failed alone is resumed", abandon, func() host.Detached { d := resumed(works); d.Title = "fails"; return d }(), true},
		{"one that has failed alone is done again", abandon, func() host.Detached { d := works; d.Title = "fails"; return d }(), false},
		{"another one has failed alone", abandon, resumed(works), false},
		{"one that runs is joined", abandon, joined("fails"), true},
		{"one that has failed before is not joined", func() { abandon(); comes(t, "detached.service", "failed") }, joined("fails"), false},
		{"another one that runs is not joined", abandon, joined("works"), false},
		{"none is there to be resumed", func() {}, resumed(works), false},
	} {
		c.before()
		if err := s.RunDetached(t.Context(), c.d); (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "half done") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// held starts and stops a unit. After that, only Start and Restart must be able to start it.
func held(t *testing.T, s host.Systemd) {
	t.Helper()
	const name = "plain.service"
	unit(t, name, "ExecStart=/bin/sleep infinity\n")
	for _, start := range []func() error{
		func() error { return s.Start(t.Context(), name) },
		func() error { return s.Restart(t.Context(), name) },
	} {
		if err := start(); err != nil {
			t.Fatal(err)
		}
		comes(t, name, "active")
		if err := s.Stop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if exec.Command("systemctl", "start", name).Run() == nil {
			t.Error("it was stopped for an update, and somebody else could start it")
		}
		comes(t, name, "inactive")
	}
}
