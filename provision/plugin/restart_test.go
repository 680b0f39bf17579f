package plugin

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestKilledIsStartedAgain checks that a killed provider is started again, even if the directory of its
// socket is gone, as after a cleanup of /tmp.
func TestKilledIsStartedAgain(t *testing.T) {
	need.Whole(t)
	c, _ := fakeClient(t, Options{}, nil)
	before := pid(t, c)
	dir, err := c.options.Sockets()
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.Until(t, await.Poll{Limit: time.Minute}, "another answers", func() bool {
		_, err := c.Instances(t.Context())
		if err != nil && !errors.Is(err, provider.ErrTransient) { // a call returns this error if the client has not noticed the end yet
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
	if _, err := c.Capabilities(t.Context()); err != nil { // it has started, and its calls have enough time
		t.Fatal(err)
	}
	c.options.CallTimeout = 100 * time.Millisecond
	_, err := c.Instances(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the provider does not answer") || !errors.Is(err, provider.ErrTransient) {
		t.Errorf("error %v", err)
	}
}

// TestDeadlineStaysWithTheClient checks that the provider's process does not learn the deadline of a call.
// Otherwise it would end the call itself, which would look like an answer.
func TestDeadlineStaysWithTheClient(t *testing.T) {
	c, _ := fakeClient(t, Options{CallTimeout: time.Minute}, map[string]string{"instances": "deadline"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Instances(ctx); err != nil {
		t.Error(err)
	}
}

// TestCallAtTheEnd makes calls while the server ends, mainly for the race detector.
func TestCallAtTheEnd(t *testing.T) {
	s := &server{provider: fake{}}
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = s.Instances(t.Context(), nil) })
	s.awaitCalls(time.Minute)
	calls.Wait()
	if _, err := s.Instances(t.Context(), nil); !errors.Is(statusToError(err), provider.ErrTransient) {
		t.Errorf("a call after the end: %v", err)
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
	await.Until(t, await.Poll{Limit: time.Minute}, "the old process is gone", func() bool { return !before.Alive() })
}

func TestTroubleAtStart(t *testing.T) {
	need.Whole(t)
	for _, tt := range []struct {
		how, want string
		timeout   time.Duration // also limits the start of the process
	}{
		{how: "refuse", want: `provider "fake": the provider does not start: there is no such region`},
		{how: "crash", want: `provider "fake": the provider does not start: the provider ended unexpectedly (exit status 3); its output: no room on the moon`},
		{how: "hang", want: `provider "fake": the provider does not start: the provider does not answer`, timeout: 10 * time.Second},
	} {
		t.Run(tt.how, func(t *testing.T) {
			c, s := fakeClient(t, Options{CallTimeout: tt.timeout}, map[string]string{"at-start": tt.how})
			if _, err := c.Instances(t.Context()); err == nil || err.Error() != tt.want || !errors.Is(err, provider.ErrTransient) {
				t.Errorf("error %v", err)
			}
			s.set("at-start", "well")
			pid(t, c)
		})
	}
}

func TestWhatIsNoProvider(t *testing.T) {
	need.Whole(t)
	for _, tt := range []struct {
		want, script string
		timeout      time.Duration
	}{
		{want: "the provider ended while it was starting (exit status 5); its output: cannot find my moon", script: "echo 'cannot find my moon' >&2; exit 5"},
		{want: "the provider did not start within 2s", script: "exec sleep 60", timeout: 2 * time.Second},
		{want: "the program does not use the protocol of providers (", script: "echo hello; exec sleep 60"},
		{want: "want a unix socket", script: "echo '1|1|tcp|127.0.0.1:1|grpc|'; exec sleep 60"},
		{want: "the provider uses a different version of the protocol (", script: "echo '1|9|unix|/nowhere|grpc|'; exec sleep 60"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), Prefix+"odd")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			c := NewClient(Options{
				Name: "odd", Sockets: sockets(t), CallTimeout: tt.timeout,
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
