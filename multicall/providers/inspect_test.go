package providers

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
)

// restartingProvider is a provider whose instances somebody restarts that many times.
type restartingProvider struct {
	provider.Provider
	mu      sync.Mutex
	again   int
	listed  []provider.Instance
	stopped []string
}

func (r *restartingProvider) Start(context.Context, provider.Spec, io.Writer) (provider.Instance, error) {
	panic("nothing is started here")
}

func (r *restartingProvider) Instances(context.Context) ([]provider.Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.listed), nil
}

func (r *restartingProvider) Stop(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = append(r.stopped, id)
	if r.again > 0 {
		r.again--
		return nil
	}
	r.listed = slices.DeleteFunc(r.listed, func(i provider.Instance) bool { return i.ID == id })
	return nil
}

// TestStopAll checks that all instances of the environment are stopped, and no others, until none is
// left.
func TestStopAll(t *testing.T) {
	for name, c := range map[string]struct {
		again   int
		stopped []string
		fails   bool
	}{
		"at once":       {stopped: []string{"a"}},
		"started again": {again: 3, stopped: []string{"a", "a", "a", "a"}},
		"for ever":      {again: 1000, stopped: []string{"a", "a", "a", "a", "a"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &restartingProvider{again: c.again, listed: []provider.Instance{
				{ID: "a", Machine: "1", Environment: "ours"}, {ID: "b", Machine: "1", Environment: "theirs"}, {Machine: "2", Environment: "ours"},
			}}
			if err := stopInstances(t.Context(), p, "ours"); (err != nil) != c.fails {
				t.Errorf("fails: %v, want %v: %v", err != nil, c.fails, err)
			}
			if diff := cmp.Diff(c.stopped, p.stopped); diff != "" {
				t.Errorf("stopped (-want +got):\n%s", diff)
			}
		})
	}
}
