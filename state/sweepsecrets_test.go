package state_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"bijou/state"
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

// TestSecretsGoWithTheirOwner checks what is left of secrets, of units that read them, and of grants.
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
