package keyspace

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/storeurl"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/fakes/memstore"
)

// newerRecord is a record of a newer binary.
const newerRecord = `{"future":{"list":[1,2]},"name":"a","place":{"future":2,"host":"h"}}`

type olderRecord struct {
	Name  string `json:"name,omitempty"`
	Place struct {
		Host string `json:"host,omitempty"`
	} `json:"place,omitzero"`
}

// TestKeepsWhatItDoesNotKnow checks that each way of writing a record keeps a newer binary's members,
// over each store.
func TestKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Run("memory", func(t *testing.T) { keepsWhatItDoesNotKnow(t, memstore.New()) })
	t.Run("sqlite", func(t *testing.T) { keepsWhatItDoesNotKnow(t, createStore(t, "sqlite:"+t.TempDir()+"/state.db")) })
	t.Run("etcd", func(t *testing.T) {
		etcdtest.Need(t)
		keepsWhatItDoesNotKnow(t, createStore(t, etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/carry")))
	})
}

func createStore(t *testing.T, url string) store.Store {
	t.Helper()
	st, err := storeurl.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func keepsWhatItDoesNotKnow(t *testing.T, st store.Store) {
	s := New(st, func(key string) bool { return strings.HasPrefix(key, "own/") })
	const both = `,"place":{"host":"h","future":2},"future":{"list":[1,2]}}`
	rename := func(tx *Tx, key, name string) error {
		doc, _, err := Load[olderRecord](tx, key)
		if err != nil {
			return err
		}
		doc.Name = name
		return tx.Put(key, doc)
	}
	for _, c := range []struct {
		name   string
		change func(tx *Tx, key string) error
		want   string // "" means that the key is absent
	}{
		{"after a read", func(tx *Tx, key string) error { return rename(tx, key, "b") }, `{"name":"b"` + both},
		{"after a list", func(tx *Tx, key string) error {
			if _, err := tx.List(key[:strings.LastIndex(key, "/")+1]); err != nil {
				return err
			}
			doc := olderRecord{Name: "b"}
			doc.Place.Host = "h"
			return tx.Put(key, doc)
		}, `{"name":"b"` + both},
		{"twice", func(tx *Tx, key string) error {
			if err := rename(tx, key, "b"); err != nil {
				return err
			}
			return rename(tx, key, "c")
		}, `{"name":"c"` + both},
		{"what the program takes away", func(tx *Tx, key string) error { return rename(tx, key, "") },
			`{"place":{"host":"h","future":2},"future":{"list":[1,2]}}`},
		{"as it was", func(tx *Tx, key string) error { return rename(tx, key, "a") }, newerRecord},
		{"to be kept", func(tx *Tx, key string) error {
			if err := rename(tx, key, "b"); err != nil {
				return err
			}
			doc, _, err := Load[olderRecord](tx, key)
			if err != nil {
				return err
			}
			return tx.PutOrRemove(key, doc, true)
		}, `{"name":"b"` + both},
		{"not to be kept", func(tx *Tx, key string) error {
			if err := rename(tx, key, "b"); err != nil {
				return err
			}
			return tx.PutOrRemove(key, olderRecord{}, false)
		}, ""},
		{"another in its place", func(tx *Tx, key string) error {
			if _, _, err := tx.Get(key); err != nil {
				return err
			}
			tx.Remove(key)
			return tx.Put(key, olderRecord{Name: "b"})
		}, `{"name":"b"}`},
		{"unread", func(tx *Tx, key string) error { return tx.Put(key, olderRecord{Name: "b"}) }, `{"name":"b"}`},
		{"text", func(tx *Tx, key string) error {
			if _, _, err := tx.Get(key); err != nil {
				return err
			}
			return tx.Put(key, "b")
		}, `"b"`},
	} {
		// The space remembers the key, since it has written it.
		for _, prefix := range []string{"others/", "own/"} {
			key := prefix + strings.ReplaceAll(c.name, " ", "-") + "/1"
			t.Run(c.name+" "+prefix, func(t *testing.T) {
				storeAs(t, st, key, newerRecord)
				// The second update changes nothing.
				for range 2 {
					mustUpdate(t, s, func(tx *Tx) error { return c.change(tx, key) })
				}
				if diff := cmp.Diff(c.want, stored(t, st, key)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
	t.Run("what changes nothing is not written", func(t *testing.T) { checkNoops(t, st, s) })
	t.Run("a claim", func(t *testing.T) { checkClaimKeeps(t, st, s) })
	t.Run("a blob's head", func(t *testing.T) { checkBlobHeadKeeps(t, st, s) })
}

// checkNoops checks updates that change nothing. One of them is for a value whose members have a different
// order from the program's.
func checkNoops(t *testing.T, st store.Store, s *Space) {
	for _, value := range []string{newerRecord, `{"place":{"host":"h"},"name":"a"}`} {
		storeAs(t, st, "noop", value)
		before := revisionOf(t, st)
		mustUpdate(t, s, func(tx *Tx) error {
			doc, _, err := Load[olderRecord](tx, "noop")
			if err != nil {
				return err
			}
			if err := tx.Put("noop", doc); err != nil {
				return err
			}
			if w := tx.Writes(); len(w) != 0 {
				t.Errorf("it counts as changed: %v", w)
			}
			return nil
		})
		if after := revisionOf(t, st); after != before {
			t.Errorf("%s is written again", value)
		}
	}
}

// checkClaimKeeps takes a claim whose record has unknown members. The record must keep them, except those of
// the previous holder.
func checkClaimKeeps(t *testing.T, st store.Store, s *Space) {
	storeAs(t, st, "claims/x", `{"epoch":3,"future":1,"holder":{"host":"h","folder":"/f","name":"n","since":"2020-01-01T00:00:00Z","future":2}}`)
	by := Holder{Host: "h", Folder: "/f", Name: "n", Boot: "b", PID: 1}
	if _, err := s.TakeClaim(t.Context(), ClaimTarget{Key: "claims/x"}, Claimant{Holder: by}); err != nil {
		t.Fatal(err)
	}
	got := stored(t, st, "claims/x")
	if !strings.Contains(got, `"epoch":4`) || !strings.Contains(got, `"future":1`) || strings.Contains(got, `"future":2`) {
		t.Error(got)
	}
}

func checkBlobHeadKeeps(t *testing.T, st store.Store, s *Space) {
	sum, _, err := s.PutBlob(t.Context(), bytes.NewReader([]byte("text")))
	if err != nil {
		t.Fatal(err)
	}
	key := BlobHeadsPrefix + sum
	// The head was last touched long ago, so the commit touches it.
	old := strings.Replace(stored(t, st, key), `"touched":"20`, `"future":1,"touched":"19`, 1)
	storeAs(t, st, key, old)
	mustUpdate(t, s, func(tx *Tx) error {
		if err := tx.ReferToBlob(sum); err != nil {
			return err
		}
		return tx.Put("refers", sum)
	})
	if _, _, err := s.PutBlob(t.Context(), bytes.NewReader([]byte("text"))); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, st, key); !strings.Contains(got, `"future":1`) || strings.Contains(got, `"touched":"19`) {
		t.Error(got)
	}
}

// storeAs writes a value as a different binary would.
func storeAs(t *testing.T, st store.Store, key, value string) {
	t.Helper()
	if _, err := st.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte(value)}}}); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T, st store.Store, key string) string {
	t.Helper()
	snap, err := st.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	kv, _, err := snap.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(kv.Value)
}

func revisionOf(t *testing.T, st store.Store) int64 {
	t.Helper()
	snap, err := st.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	revision, err := snap.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func mustUpdate(t *testing.T, s *Space, f func(tx *Tx) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Update(ctx, f); err != nil {
		t.Fatal(err)
	}
}
