package plugin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

func TestStartCrosses(t *testing.T) {
	c, _ := fakeClient(t, Options{}, map[string]string{"name": "moon.example"})
	var boot bytes.Buffer
	got, err := c.Start(t.Context(), fakeSpec("talk"), &boot)
	want := provider.Instance{
		ID: `7 noble 1-2 2048 [] t talk i7`, Environment: "u", Machine: "7", Running: true, Private: "10.0.0.1", Public: "moon.example",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
	if diff := cmp.Diff("one\ntwo\nthr\uFFFDee\n", boot.String()); diff != "" {
		t.Error(diff)
	}
	caps, err := c.Capabilities(t.Context())
	if diff := cmp.Diff(provider.Capabilities{Name: "fake", Isolated: true, Remote: true}, caps); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
}

func TestErrorsKeepTheirText(t *testing.T) {
	c, _ := fakeClient(t, Options{}, nil)
	tests := []struct {
		placement, text string
		transient       bool
	}{
		{"busy", "no room for 7: the start is retried", true},
		{"impossible", "no such place: 100% full", false},
	}
	for _, tt := range tests {
		t.Run(tt.placement, func(t *testing.T) {
			_, err := c.Start(t.Context(), fakeSpec(tt.placement), io.Discard)
			if err == nil || err.Error() != tt.text || errors.Is(err, provider.ErrTransient) != tt.transient {
				t.Errorf("%s: error %v", tt.placement, err)
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c, _ := fakeClient(t, Options{}, map[string]string{"instances": "large"})
	_, err := c.Instances(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the provider's answer has more than 16777216 bytes") {
		t.Errorf("error %v", err)
	}
}

// notice is a writer that signals the first write.
type notice struct {
	once sync.Once
	seen chan struct{}
}

func (n *notice) Write(p []byte) (int, error) {
	n.once.Do(func() { close(n.seen) })
	return len(p), nil
}

func TestCancellationCrosses(t *testing.T) {
	c, s := fakeClient(t, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	n := &notice{seen: make(chan struct{})}
	go func() {
		<-n.seen
		cancel()
	}()
	if _, err := c.Start(ctx, fakeSpec("wait"), n); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	await.Until(t, await.Poll{Limit: time.Minute}, "the provider was told", func() bool {
		_, err := os.Stat(filepath.Join(s.env.Dir, "told"))
		return err == nil
	})
	if _, err := c.Instances(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestCrashedStartIsTransient(t *testing.T) {
	need.Whole(t)
	c, _ := fakeClient(t, Options{}, nil)
	_, err := c.Start(t.Context(), fakeSpec("crash once"), io.Discard)
	want := `provider "fake": the provider ended unexpectedly (exit status 4); its output: panic: the moon is down; restarting it`
	if err == nil || err.Error() != want || !errors.Is(err, provider.ErrTransient) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Start(t.Context(), fakeSpec("crash once"), io.Discard); err != nil {
		t.Errorf("the second start: %v", err)
	}
}
