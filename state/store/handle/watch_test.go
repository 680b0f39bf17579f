package handle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// TestWatch checks that each event that may end a wait ends it, and that nothing else does.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(o *handle.Opener, w *handle.Watch, cancel func())
		want error
	}{
		{"roused", func(_ *handle.Opener, w *handle.Watch, _ func()) { w.Wake(); w.Wake() }, nil},
		{"ended", func(_ *handle.Opener, w *handle.Watch, _ func()) { w.Cancel(); w.Cancel() }, store.ErrClosed},
		{"called off", func(_ *handle.Opener, _ *handle.Watch, cancel func()) { cancel() }, context.Canceled},
		{"gone", func(o *handle.Opener, _ *handle.Watch, _ func()) { _ = o.MarkGone() }, store.ErrStoreGone},
		{"closed", func(o *handle.Opener, _ *handle.Watch, _ func()) { o.Close(func() {}) }, store.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := handle.New()
				defer o.Close(func() {})
				w := o.NewWatch(store.Scope{Keys: []string{"c", "a/y", "a", "b/x", "c"}, Prefixes: []string{"b", "a/", "a/x"}})
				want := []handle.Span{{Text: "a"}, {Text: "a/", Prefix: true}, {Text: "b", Prefix: true}, {Text: "c"}}
				if diff := cmp.Diff(want, w.Spans); diff != "" {
					t.Error(diff)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				over := false
				go func() { w.Wait(ctx); over = true }()
				synctest.Wait()
				if over {
					t.Error("it has not waited")
				}
				c.end(o, w, cancel)
				synctest.Wait()
				if err := w.CheckUsable(ctx); err != c.want || !over {
					t.Errorf("got %v, want %v; over: %v", err, c.want, over)
				}
			})
		})
	}
}
