package hookctx_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
	"bijou/testscripts/kit/statetest"
)

// keeper is a secret.Keeper with the keys in this process.
type keeper secret.Keyring

func (k keeper) Sealer(context.Context) (secret.Sealer, error) { return secret.Keyring(k), nil }

// secrets runs the hooks of a unit, one after another, and reads its secrets from the store.
type secrets struct {
	t    *testing.T
	st   *state.State
	keys keeper
	id   string // a secret of the unit
}

// newSecrets returns secrets with one secret of the unit, whose revision 1 has the content "a".
func newSecrets(t *testing.T) *secrets {
	s := &secrets{t: t, st: statetest.New(t), keys: keeper{secret.NewKey()}}
	statetest.AddService(t, s.st, statetest.Meta("app", ""), 1)
	c := s.hook()
	id, err := c.AddSecret(t.Context(), true, hookapi.SecretChange{Content: content("a")})
	if err != nil {
		t.Fatal(err)
	}
	s.id = id
	s.commit(c)
	return s
}

func content(value string) secret.Content { return secret.Content{"key": []byte(value)} }

func (s *secrets) hook() *hookctx.Context {
	return hookctx.New(hookctx.Options{
		State: s.st, Update: s.st.Update, Log: func(string, string) {}, SecretKeys: s.keys,
		Facts: hookapi.Facts{Unit: "app/0", Service: "app", Relation: hookapi.NoRelation},
	})
}

func (s *secrets) commit(c *hookctx.Context) {
	statetest.Update(s.t, s.st, func(tx *state.Tx) error { _, err := c.AddTo(s.t.Context(), tx); return err })
}

func (s *secrets) set(c *hookctx.Context, value string) {
	s.t.Helper()
	if err := c.SetSecret(s.t.Context(), s.id, hookapi.SecretChange{Content: content(value)}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *secrets) remove(c *hookctx.Context, revision int) {
	s.t.Helper()
	if err := c.RemoveSecret(s.t.Context(), s.id, revision); err != nil {
		s.t.Fatal(err)
	}
}

// stored returns the record in the store.
func (s *secrets) stored() secret.Record {
	return statetest.Read(s.t, s.st, func(v *state.View) (secret.Record, error) { return record.Get(v, s.id) })
}

// contents returns the value of each stored revision.
func (s *secrets) contents() map[int]string {
	return statetest.Read(s.t, s.st, func(v *state.View) (map[int]string, error) {
		r, err := record.Get(v, s.id)
		values := map[int]string{}
		for n := range r.Revisions {
			c, openErr := record.Open(v, secret.Keyring(s.keys), r, n)
			err = errors.Join(err, openErr)
			values[n] = string(c["key"])
		}
		return values, err
	})
}

// wantContents checks the value of each stored revision.
func (s *secrets) wantContents(want map[int]string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.contents()); diff != "" {
		s.t.Error(diff)
	}
}

// addStored makes a hook add a revision with the value, and commits it.
func (s *secrets) addStored(value string) {
	s.t.Helper()
	c := s.hook()
	s.set(c, value)
	s.commit(c)
}

// TestRemoveAddedRevision checks that a hook can remove the revision that it adds, and go on with the secret.
func TestRemoveAddedRevision(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *secrets, c *hookctx.Context)
		want map[int]string
	}{
		{"removed", func(s *secrets, c *hookctx.Context) {
			s.set(c, "b")
			s.remove(c, 2)
		}, map[int]string{1: "a"}},
		{"set again", func(s *secrets, c *hookctx.Context) {
			s.set(c, "b")
			s.remove(c, 2)
			s.set(c, "c")
		}, map[int]string{1: "a", 2: "c"}},
		{"set to the same again", func(s *secrets, c *hookctx.Context) {
			s.set(c, "b")
			s.remove(c, 2)
			s.set(c, "b")
		}, map[int]string{1: "a", 2: "b"}},
		{"set to the stored content", func(s *secrets, c *hookctx.Context) {
			s.set(c, "b")
			s.remove(c, 2)
			s.set(c, "a")
		}, map[int]string{1: "a"}},
		{"twice", func(s *secrets, c *hookctx.Context) {
			for _, value := range []string{"b", "c"} {
				s.set(c, value)
				s.remove(c, 2)
			}
			s.set(c, "d")
		}, map[int]string{1: "a", 2: "d"}},
		{"old one removed too", func(s *secrets, c *hookctx.Context) {
			s.set(c, "b")
			s.remove(c, 2)
			s.set(c, "c")
			s.remove(c, 1)
		}, map[int]string{2: "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSecrets(t)
			c := s.hook()

			test.do(s, c)
			s.commit(c)

			s.wantContents(test.want)
		})
	}
}

// TestRemovedRevisionIsNotDescribed checks what a hook sees and stores of a secret after it has removed the
// revision that it adds.
func TestRemovedRevisionIsNotDescribed(t *testing.T) {
	s := newSecrets(t)
	ctx := t.Context()
	c := s.hook()
	s.set(c, "b")
	got, err := c.SecretContent(ctx, hookapi.SecretQuery{ID: s.id, Refresh: true})
	if err != nil || string(got["key"]) != "b" {
		t.Fatal(got, err)
	}

	s.remove(c, 2)
	expires := time.Now().Add(time.Hour).UTC()
	if err := c.SetSecret(ctx, s.id, hookapi.SecretChange{Expires: expires}); err != nil {
		t.Fatal(err)
	}
	infos, err := c.SecretInfos(ctx)
	if err != nil || len(infos) != 1 || infos[0].Revision != 1 || !infos[0].Expires.Equal(expires) {
		t.Errorf("described as %+v, %v", infos, err)
	}
	got, err = c.SecretContent(ctx, hookapi.SecretQuery{ID: s.id})
	if err != nil || string(got["key"]) != "a" {
		t.Errorf("content %q, %v", got, err)
	}

	s.commit(c)
	r := s.stored()
	want := secret.Consumer{Revision: 1, Told: 1}
	if r.Latest != 1 || !r.Revisions[1].Expires.Equal(expires) || r.Consumers["app/0"] != want {
		t.Errorf("stored %+v", r)
	}
}

// TestRemoveAddedRevisionOfStaleSecret checks that the commit removes no revision of another hook that has the
// number which the hook saw for its own.
func TestRemoveAddedRevisionOfStaleSecret(t *testing.T) {
	s := newSecrets(t)
	c := s.hook()
	s.set(c, "b")

	s.addStored("other") // by another hook

	s.remove(c, 2)
	s.commit(c)
	s.wantContents(map[int]string{1: "a", 2: "other"})
}

// TestRemovedContentIsSetAgain checks that content is not lost if the hook removes the stored revision that has
// it, and then sets it again.
func TestRemovedContentIsSetAgain(t *testing.T) {
	s := newSecrets(t)
	s.addStored("b")

	c := s.hook()
	s.remove(c, 2)
	s.set(c, "b")
	s.commit(c)
	s.wantContents(map[int]string{1: "a", 3: "b"})
}

// TestExpiryOfRemovedRevision checks that an expiry does not bring back a revision without content.
func TestExpiryOfRemovedRevision(t *testing.T) {
	s := newSecrets(t)
	s.addStored("b")
	c := s.hook()
	s.remove(c, 2)
	s.commit(c)

	c = s.hook()
	if err := c.SetSecret(t.Context(), s.id, hookapi.SecretChange{Expires: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.commit(c)
	s.wantContents(map[int]string{1: "a"})
}

// TestSecretAddedAndRemoved checks that a secret that a hook both adds and removes is never stored.
func TestSecretAddedAndRemoved(t *testing.T) {
	for _, revision := range []int{0, 1} {
		s := newSecrets(t)
		ctx := t.Context()
		c := s.hook()
		add := func() string {
			id, err := c.AddSecret(ctx, true, hookapi.SecretChange{Label: "own", Content: content("b")})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}

		removed := add()
		if err := c.RemoveSecret(ctx, removed, revision); err != nil {
			t.Fatal(err)
		}
		if err := c.SetSecret(ctx, removed, hookapi.SecretChange{Content: content("c")}); err == nil {
			t.Error("a removed secret was set")
		}

		kept := add() // the label is free again
		s.commit(c)
		all := statetest.Read(t, s.st, record.All)
		ids := make([]string, 0, len(all))
		for _, r := range all {
			ids = append(ids, r.ID)
		}
		want := []string{s.id, kept}
		slices.Sort(want)
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Error(diff)
		}
	}
}
