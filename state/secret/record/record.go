// Package record keeps the secrets of an environment: their records, their sealed contents, and
// who owns and reads them. Package secret decides what a secret may become; the keys that seal
// contents are the callers'.
package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/secret"
)

// Index lists the secrets of a unit or a service, by their ids. It alone says whose a secret
// is: a service deployed again under an old name has none of the old one's.
type Index struct {
	Owned    []string `json:"owned,omitempty"`
	Consumed []string `json:"consumed,omitempty"` // that a unit has read
	Granted  []string `json:"granted,omitempty"`  // that operators have granted a service
}

// IndexOf reads the index of a unit or a service; that of operators is empty.
func IndexOf(v *state.View, o secret.Owner) (x Index, err error) {
	if key := indexKey(o); key != "" {
		x, _, err = keyspace.Load[Index](v.Keys(), key)
	}
	return x, err
}

func indexKey(o secret.Owner) string {
	switch {
	case o.Unit != "":
		return keys.UnitSecrets(o.Unit)
	case o.Service != "":
		return keys.ServiceSecrets(o.Service)
	}

	return ""
}

// changeIndex writes nothing where nothing changes.
func changeIndex(tx *state.Tx, o secret.Owner, list func(x *Index) *[]string, id string, in bool) error {
	x, err := IndexOf(tx.View, o)
	ids := list(&x)
	if err != nil || o == (secret.Owner{}) || slices.Contains(*ids, id) == in {
		return err
	}

	*ids = slices.DeleteFunc(*ids, func(one string) bool { return one == id })
	if in {
		*ids = append(*ids, id)
	}
	return tx.Keys().Put(indexKey(o), x)
}

func ownedIDs(x *Index) *[]string    { return &x.Owned }
func consumedIDs(x *Index) *[]string { return &x.Consumed }
func grantedIDs(x *Index) *[]string  { return &x.Granted }

// Get reads a secret. state.ErrNotFound.
func Get(v *state.View, id string) (secret.Record, error) {
	r, err := keyspace.LoadExisting[secret.Record](v.Keys(), keys.Secret(id), "secret %q not found", id)
	r.ID = id
	return r, err
}

// Read reads the records of the secrets that exist, in order, in one round trip.
func Read(v *state.View, ids []string) (records []secret.Record, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) > 0 {
		err = v.Keys().Prefetch(Watch(ids).Keys...)
	}

	for _, id := range ids {
		r, gerr := Get(v, id)
		if gerr == nil {
			records = append(records, r)
		} else if !errors.Is(gerr, state.ErrNotFound) && !v.Skips(gerr) { // others write some of them
			err = errors.Join(err, gerr)
		}
	}

	return records, err
}

// All reads every secret, in order.
func All(v *state.View) ([]secret.Record, error) {
	return keyspace.LoadChildren(v.Keys(), keys.Secrets, func(r *secret.Record, id string) { r.ID = id })
}

// Watch covers the records of secrets.
func Watch(ids []string) (s state.Scope) {
	for _, id := range ids {
		s.Keys = append(s.Keys, keys.Secret(id))
	}
	return s
}

// Put writes a secret's record, and notes the secret with its owner and with each unit that reads it. With
// AutoPrune it removes the revisions that no unit reads.
func Put(tx *state.Tx, r secret.Record) error {
	before, known, err := keyspace.Load[secret.Record](tx.Keys(), keys.Secret(r.ID))
	if err != nil {
		return err
	}

	if !known {
		if err := changeIndex(tx, r.Owner, ownedIDs, r.ID, true); err != nil {
			return err
		}
	}

	for unit := range r.Consumers {
		if _, read := before.Consumers[unit]; read {
			continue
		}
		if err := changeIndex(tx, secret.Owner{Unit: unit}, consumedIDs, r.ID, true); err != nil {
			return err
		}
	}

	if r.AutoPrune {
		for _, n := range r.Untracked(func(string, secret.Grant) bool { return true }) {
			delete(r.Revisions, n)
			tx.Keys().Remove(keys.SecretContent(r.ID, n))
		}
	}

	return tx.Keys().Put(keys.Secret(r.ID), r)
}

// Grant lets a service read an operators' secret, or no longer.
func Grant(tx *state.Tx, r secret.Record, service string, may bool) error {
	if _, err := tx.Service(service); err != nil {
		return err
	}

	g := secret.Grant{Relation: secret.NoRelation, Service: service}
	if r.RemoveGrants(g); may {
		r.AddGrant(g)
	}
	if err := changeIndex(tx, secret.Owner{Service: service}, grantedIDs, r.ID, may); err != nil {
		return err
	}

	return Put(tx, r)
}

// maxRemovedContents is how many contents of a secret go with it; the rest is swept.
const maxRemovedContents = 100

// Remove removes a revision of a secret, and returns the remaining record. If revision is 0, or was the
// last one, it removes the secret.
func Remove(tx *state.Tx, r secret.Record, revision int) (secret.Record, error) {
	if revision != 0 {
		delete(r.Revisions, revision)
		tx.Keys().Remove(keys.SecretContent(r.ID, revision))
		if len(r.Revisions) > 0 {
			return r, Put(tx, r)
		}
	}

	if err := changeIndex(tx, r.Owner, ownedIDs, r.ID, false); err != nil {
		return r, err
	}

	for _, g := range r.Grants {
		if err := changeIndex(tx, secret.Owner{Service: g.Service}, grantedIDs, r.ID, false); err != nil {
			return r, err
		}
	}

	for unit := range r.Consumers {
		if err := changeIndex(tx, secret.Owner{Unit: unit}, consumedIDs, r.ID, false); err != nil {
			return r, err
		}
	}

	revisions := slices.Sorted(maps.Keys(r.Revisions))
	for _, n := range revisions[:min(len(revisions), maxRemovedContents)] {
		tx.Keys().Remove(keys.SecretContent(r.ID, n))
	}
	tx.Keys().Remove(keys.Secret(r.ID))
	return r, nil
}

// A content that is larger is a blob, as is one of an update that has written much already.
const (
	maxInlineBytes = 48 << 10
	maxInlineTotal = 512 << 10
)

// PutContent seals the content of the newest revision of a record that Put is to write.
func PutContent(tx *state.Tx, by secret.Sealer, r secret.Record, c secret.Content) error {
	s, err := by.Seal(&r, r.Latest, c)
	if err != nil {
		return err
	}

	if len(s.Data) > maxInlineBytes || tx.Keys().WrittenBytes()+2*len(s.Data) > maxInlineTotal {
		s.Blob = tx.Keys().AddBlob(s.Data)
		s.Data = nil
	}
	return tx.Keys().Put(keys.SecretContent(r.ID, r.Latest), s)
}

// maxResealed contents are sealed anew in one transaction.
const maxResealed = 20

// Reseal seals contents of a secret with the newest key if they are not, at most maxResealed in one call. It
// returns how many it has sealed. It returns state.ErrNotFound if there is no such secret, and secret.ErrNoKey if
// the ring lacks a key.
func Reseal(tx *state.Tx, ring secret.Keyring, id string) (n int, err error) {
	r, err := Get(tx.View, id)
	if err != nil {
		return 0, err
	}

	for _, revision := range slices.Sorted(maps.Keys(r.Revisions)) {
		s, there, err := keyspace.Load[secret.Sealed](tx.Keys(), keys.SecretContent(id, revision))
		if err != nil || n == maxResealed {
			return n, err
		}
		if !there || s.Key == ring[len(ring)-1].ID {
			continue
		}

		c, err := Open(tx.View, ring, r, revision)
		if err != nil {
			return n, err
		}

		r.Latest = revision
		n++
		if err := PutContent(tx, ring, r, c); err != nil {
			return n, err
		}
	}

	return n, nil
}

// Open reads and opens the content of a revision. state.ErrNotFound, secret.ErrNoKey.
func Open(v *state.View, by secret.Sealer, r secret.Record, revision int) (secret.Content, error) {
	s, err := keyspace.LoadExisting[secret.Sealed](v.Keys(), keys.SecretContent(r.ID, revision),
		"secret %q revision %d not found", r.ID, revision)
	if err == nil && s.Blob != "" {
		if s.Data, err = v.Keys().ReadBlob(s.Blob); err != nil {
			err = fmt.Errorf("cannot read secret %q: the store is damaged: %v", r.ID, err)
		}
	}
	if err != nil {
		return nil, err
	}

	return by.Open(&r, revision, s)
}
