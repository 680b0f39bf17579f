package host_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
	"bijou/updater/activity"
	"bijou/updater/host"
	"bijou/updater/release"
)

// program writes a shell script.
func program(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
}

// lives reports whether the process with the PID in the file exists. A zombie exists until its parent waits
// for it.
func lives(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(pid, 0) == nil
}

// TestHungCommand checks that a hung command is killed with its process group and run a second time. If it
// hangs again, its step fails, and the error contains the command and its last output. The command is shown
// as an activity while it runs.
func TestHungCommand(t *testing.T) {
	need.Whole(t)
	u := &units{}
	h, dir := newHost(t, u)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	child, tries := filepath.Join(dir, "child"), filepath.Join(dir, "tries")
	hang := "echo layer 3 of 7; echo x >>" + tries + "; sleep 1000 & echo $! >" + child + "; wait\n"
	program(t, filepath.Join(dir, "podman"), "[ $1 = pull ] || exit 1\n"+hang)
	c := release.Component{
		Name: "cke", Services: []string{"cke.service"}, Artifact: &release.Artifact{Image: "example/cke:1"}, Timeout: release.Duration(5 * time.Second), // enough time to start it on a busy machine
	}
	log := &activity.Log{}
	ended := make(chan error, 1)
	go func() { ended <- h.Update(activity.With(t.Context(), log), c) }()
	await.Until(t, await.Poll{Limit: time.Minute}, "one says that it runs", func() bool {
		e, _ := log.Current(0)
		return strings.HasSuffix(e.Message, `/podman pull example/cke:1"`) && strings.HasPrefix(e.Message, "runs ")
	})
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "podman pull example/cke:1") || !strings.Contains(err.Error(), "timed out after 5s") || !strings.Contains(err.Error(), "layer 3 of 7") {
		t.Errorf("it ends with %v", err)
	}
	if n, _ := os.ReadFile(tries); string(n) != "x\nx\n" {
		t.Errorf("it was tried %d times", len(n)/2)
	}
	if e, ok := log.Current(0); ok {
		t.Errorf("at its end it is said to do %v", e)
	}
	await.Until(t, await.Poll{Limit: time.Minute}, "its child has ended, too", func() bool { return !lives(t, child) })
	program(t, filepath.Join(dir, "podman"), "[ $1 = pull ] || exit 1\n[ -e "+tries+".2 ] && exit 0\ntouch "+tries+".2\n"+hang)
	if err := h.Update(t.Context(), c); err != nil {
		t.Errorf("one that hangs once: %v", err)
	}
}

// TestEverythingThatHangs checks the same for a hung service manager, a hung command after a start and
// a hung list of images.
func TestEverythingThatHangs(t *testing.T) {
	need.Whole(t)
	dir := t.TempDir()
	hangs := filepath.Join(dir, "hangs")
	program(t, hangs, "sleep 1000 & wait\n")
	h, err := host.New(host.Options{Dir: filepath.Join(dir, "state"), Services: host.ServiceCommand{Path: hangs}, HealthTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	well, err := host.New(host.Options{Dir: filepath.Join(dir, "other"), Services: &units{}, HealthTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	short := release.Duration(time.Second)
	for what, f := range map[string]func() error{
		"stop": func() error {
			return h.Stop(t.Context(), release.Component{Name: "a", Services: []string{"a"}, Timeout: short})
		},
		"after": func() error {
			return well.Update(t.Context(), release.Component{Name: "a", Services: []string{"a"}, Timeout: short, AfterStart: &release.AfterStart{Command: []string{hangs}}})
		},
		"images": func() error {
			return well.DeliverContents(t.Context(), release.Component{Name: "a", Timeout: short, Contents: &release.Contents{ImagesOf: []string{hangs}}})
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "timed out after 1s, twice") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
