package hookctx_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/resources"
	"bijou/testscripts/kit/statetest"
)

// acting returns an environment whose charm has an action and a resource, and the context of that
// action while it runs.
func acting(t *testing.T) (st *state.State, c *hookctx.Context, dir string) {
	st, dir = statetest.New(t), t.TempDir()
	f := statetest.Meta("app", "resources: {site: {filename: site.zip}, other: {}}\n")
	f["actions.yaml"] = "backup: {}\n"
	statetest.AddService(t, st, f, 1)
	statetest.Update(t, st, func(tx *state.Tx) error {
		a, err := actions.Add(tx, actions.Action{Unit: "app/0", Name: "backup"}, time.Now())
		if err != nil {
			return err
		}
		return actions.Start(tx, a.ID, "x", time.Now())
	})
	c = hookctx.New(hookctx.Options{
		State: st, Update: st.Update, Log: func(string, string) {}, Resources: dir,
		Facts:  hookapi.Facts{Unit: "app/0", Service: "app", Relation: hookapi.NoRelation},
		Action: &hookapi.Action{ID: "0", Name: "backup"},
	})
	return st, c, dir
}

func TestActionOfAHook(t *testing.T) {
	st, c, _ := acting(t)
	ctx := t.Context()
	for _, results := range []map[string]any{
		{"a": "1", "b": map[string]any{"c": "2"}},
		{"b": map[string]any{"d": "3"}, "a": "4"},
	} {
		if err := c.SetResults(ctx, results); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SetResults(ctx, map[string]any{"big": strings.Repeat("x", actions.MaxText)}); err == nil {
		t.Error("results without bound were taken")
	}
	if err := errors.Join(c.FailAction(ctx, "no"), c.LogAction(ctx, "half")); err != nil {
		t.Fatal(err)
	}
	results, failure := c.ActionEnd()
	want := map[string]any{"a": "4", "b": map[string]any{"c": "2", "d": "3"}}
	if diff := cmp.Diff(want, results); diff != "" || failure == nil || *failure != "no" {
		t.Errorf("failure %v, results (-want +got):\n%s", failure, diff)
	}
	a := statetest.Read(t, st, func(v *state.View) (actions.Action, error) { return actions.Get(v, 0) })
	if len(a.Progress) != 1 || a.Progress[0].Message != "half" {
		t.Errorf("progress: %+v", a.Progress)
	}
	c.Close()
	if err := c.FailAction(ctx, "late"); !errors.Is(err, hookapi.ErrGone) {
		t.Errorf("after its end: %v", err)
	}
}

func giveResource(t *testing.T, st *state.State, data string) {
	t.Helper()
	sum, size, err := st.PutFile(t.Context(), bytes.NewReader([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error {
		_, err := resources.Put(tx, "app", resources.Resource{Name: "site", SHA256: sum, Size: size})
		return err
	})
}

func TestResourceIsFetchedOncePerVersion(t *testing.T) {
	st, c, dir := acting(t)
	if _, err := c.Resource(t.Context(), "site"); !errors.Is(err, hookapi.ErrUnknownResource) || !strings.Contains(err.Error(), "juju attach-resource app site=FILE") {
		t.Errorf("not given: %v", err)
	}
	path := filepath.Join(dir, "site", "site.zip")
	expect := func(what, want string) {
		t.Helper()
		got, err := c.Resource(t.Context(), "site")
		data, _ := os.ReadFile(path)
		if err != nil || got != path || string(data) != want {
			t.Errorf("%s: path %q, content %q, %v", what, got, data, err)
		}
	}
	giveResource(t, st, "one")
	expect("first", "one")
	if err := os.WriteFile(path, []byte("own"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("it is there", "own")
	giveResource(t, st, "second")
	expect("the next version", "second")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("it was removed", "second")
	if err := os.WriteFile(path, []byte("half of it"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("it is not whole", "second")
}
