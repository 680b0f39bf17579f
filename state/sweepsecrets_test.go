package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/secret"
	"bijou/state/secret/record"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// keysOfSecrets lists the keys of secrets and their contents.
func keysOfSecrets(t *testing.T, st *state.State) string {
	kvs := statetest.Read(t, st, func(v *state.View) ([]keyspace.KeyValue, error) { return v.Keys().List("secret") })
	var all []string
	for _, kv := range kvs {
		all = append(all, kv.Key)
	}
	return strings.Join(all, " ")
}

// TestSecretsGoWithTheirOwner checks which records of secrets, of their readers and of grants remain after
// the removal of owners.
func TestSecretsGoWithTheirOwner(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		ring := secret.Keyring{secret.NewKey()}
		now := time.Now().UTC()
		statetest.AddService(t, st, statetest.MySQL(), 1)
		content := func(r *secret.Record, c secret.Content) {
			statetest.Update(t, st, func(tx *state.Tx) error {
				r.AddRevision(now)
				return errors.Join(record.PutContent(tx, ring, *r, c), record.Put(tx, *r))
			})
		}
		own := secret.Record{ID: "own", Origin: "u", Owner: secret.Owner{Unit: "mysql/0"}}
		content(&own, secret.Content{"big": bytes.Repeat([]byte("x"), 900_000)})
		ours := secret.Record{ID: "ours", Origin: "u", Owner: secret.Owner{Service: "mysql"}}
		content(&ours, secret.Content{"key": []byte("a")})
		free := secret.Record{ID: "free", Origin: "u"}
		content(&free, secret.Content{"key": []byte("b")})
		statetest.Update(t, st, func(tx *state.Tx) error {
			r, err := record.Get(tx.View, "free")
			r.Track("mysql/0", 1, "label")
			return errors.Join(err, record.Grant(tx, r, "mysql", true))
		})
		opened := statetest.Read(t, st, func(v *state.View) (secret.Content, error) { return record.Open(v, ring, own, 1) })
		if len(opened["big"]) != 900_000 {
			t.Errorf("a large content has %d bytes when it is read", len(opened["big"]))
		}
		run := func() {
			if err := sweep.Run(t.Context(), st, now.Add(2*keyspace.BlobGrace)); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if got, want := keysOfSecrets(t, st), "secret-contents/free/1 secret-contents/ours/1 secret-contents/own/1 secrets/free secrets/ours secrets/own"; got != want {
			t.Errorf("swept while its owners were there: %s, want %s", got, want)
		}
		opened = statetest.Read(t, st, func(v *state.View) (secret.Content, error) { return record.Open(v, ring, own, 1) })
		if len(opened["big"]) != 900_000 {
			t.Error("the blob of a large content was swept")
		}
		if err := st.ForceDestroyService(t.Context(), "mysql"); err != nil {
			t.Fatal(err)
		}
		run()
		if got, want := keysOfSecrets(t, st), "secret-contents/free/1 secrets/free"; got != want {
			t.Errorf("once the service is gone: %s, want %s", got, want)
		}
		r := statetest.Read(t, st, func(v *state.View) (secret.Record, error) { return record.Get(v, "free") })
		if len(r.Consumers)+len(r.Grants) != 0 {
			t.Errorf("the operators' secret remembers who is gone: %+v", r)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { _, err := record.Remove(tx, r, 1); return err })
		if got := keysOfSecrets(t, st); got != "" {
			t.Errorf("with its last revision a secret goes, but for %s", got)
		}
	})
}

// TestSecretsOfManyAreSwept checks that no secret is too large for a sweep, no matter what its owner has
// written.
func TestSecretsOfManyAreSwept(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		now := time.Now().UTC()
		statetest.AddService(t, st, statetest.MySQL(), 1)
		many := secret.Record{
			Latest: 700, AutoPrune: true, Revisions: map[int]secret.Revision{}, Consumers: map[string]secret.Consumer{}, Created: now, Updated: now,
		}
		for n := range 700 {
			many.Revisions[n+1] = secret.Revision{Created: now}
			many.Consumers[fmt.Sprintf("gone/%d", n)] = secret.Consumer{Revision: 700}
			many.Grants = append(many.Grants, secret.Grant{Relation: secret.NoRelation, Service: fmt.Sprintf("s%d", n)})
		}
		put := func(id string, owner secret.Owner, index record.Index) {
			r := many
			r.Owner = owner
			statetest.Update(t, st, func(tx *state.Tx) error {
				return errors.Join(tx.Keys().Put(keys.Secret(id), r), tx.Keys().Put(keys.UnitSecrets(owner.Unit), index))
			})
		}
		put("held", secret.Owner{Unit: "mysql/0"}, record.Index{Owned: []string{"held"}})
		put("lost", secret.Owner{Unit: "gone/0"}, record.Index{})

		for range 8 {
			check(t, sweep.Run(t.Context(), st, now))
			statetest.Update(t, st, func(tx *state.Tx) error { // as the owner's agent does
				r, err := record.Get(tx.View, "held")
				return errors.Join(err, record.Put(tx, r))
			})
		}
		if left := keysOfSecrets(t, st); left != "secrets/held" {
			t.Errorf("left are %s", left)
		}
		held := statetest.Read(t, st, func(v *state.View) (secret.Record, error) { return record.Get(v, "held") })
		if len(held.Grants) > 0 || len(held.Consumers) > 0 || len(held.Revisions) != 1 {
			t.Errorf("it has %d grants, %d readers and %d revisions", len(held.Grants), len(held.Consumers), len(held.Revisions))
		}
	})
}

// TestSweepGoesOn checks that a sweep carries out all other steps if one step fails.
func TestSweepGoesOn(t *testing.T) {
	st := statetest.New(t)
	statetest.Update(t, st, func(tx *state.Tx) error {
		damaged := tx.Keys().Put(keys.Service("broken"), "no record")
		old := tx.Keys().Put(keys.Action(0), actions.Action{Unit: "gone/0", Status: actions.Completed})
		return errors.Join(damaged, old)
	})
	err := sweep.Run(t.Context(), st, time.Now())
	if err == nil || !strings.Contains(err.Error(), "cannot sweep charms") {
		t.Errorf("got %v", err)
	}

	there := statetest.Read(t, st, func(v *state.View) (bool, error) { return v.Keys().HasUnguarded(keys.Action(0)) })
	if there {
		t.Error("the old action is still there")
	}
}

// TestResealPassesOverWhatDoesNotOpen checks that all other contents are sealed with a new key if one content
// cannot be opened because its owner's agent has not sealed it.
func TestResealPassesOverWhatDoesNotOpen(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		former, fresh := secret.NewKey(), secret.NewKey()
		r := secret.Record{ID: "own", Origin: "u", Owner: secret.Owner{Unit: "mysql/0"}}
		for range 4 {
			statetest.Update(t, st, func(tx *state.Tx) error {
				r.AddRevision(time.Now().UTC())
				return errors.Join(record.PutContent(tx, secret.Keyring{former}, r, secret.Content{"a": []byte("b")}), record.Put(tx, r))
			})
		}
		for revision, s := range map[int]secret.Sealed{
			1: {Key: "unknown", Data: []byte("x")}, 2: {Key: former.ID, Data: []byte("x")}, 3: {Key: former.ID, Blob: strings.Repeat("a", 64)},
		} {
			statetest.Update(t, st, func(tx *state.Tx) error {
				key := keys.SecretContent(r.ID, revision)
				_, _, err := tx.Keys().Get(key)
				return errors.Join(err, tx.Keys().Put(key, s))
			})
		}

		var n int
		var unopened []int
		statetest.Update(t, st, func(tx *state.Tx) (err error) {
			n, unopened, err = record.Reseal(tx, secret.Keyring{former, fresh}, r.ID)
			return err
		})
		if n != 1 || !slices.Equal(unopened, []int{1, 2, 3}) {
			t.Errorf("%d are sealed, and %v not", n, unopened)
		}
		statetest.View(t, st, func(v *state.View) error {
			for revision := 1; revision < 4; revision++ {
				if _, err := record.Open(v, secret.Keyring{former, fresh}, r, revision); !record.IsUnopened(err) {
					t.Errorf("revision %d: %v", revision, err)
				}
			}
			_, err := record.Open(v, secret.Keyring{fresh}, r, 4)
			return err
		})
	})
}

// TestManyRevisionsAreResealed checks that a secret is sealed with a new key even if it has more revisions
// than a transaction can have conditions.
func TestManyRevisionsAreResealed(t *testing.T) {
	st := statetest.New(t)
	former, fresh := secret.NewKey(), secret.NewKey()
	r := secret.Record{ID: "own", Origin: "u", Owner: secret.Owner{Unit: "mysql/0"}}
	for range 55 {
		statetest.Update(t, st, func(tx *state.Tx) error {
			for range 10 {
				r.AddRevision(time.Now().UTC())
				if err := record.PutContent(tx, secret.Keyring{former}, r, secret.Content{"a": []byte("b")}); err != nil {
					return err
				}
			}
			return record.Put(tx, r)
		})
	}

	total := 0
	for n := 1; n > 0; total += n {
		statetest.Update(t, st, func(tx *state.Tx) (err error) {
			n, _, err = record.Reseal(tx, secret.Keyring{former, fresh}, r.ID)
			return err
		})
	}
	if total != 550 {
		t.Errorf("%d revisions are sealed anew, want 550", total)
	}
}
