// Package record stores the secrets of an environment: their records, their sealed contents, and indexes of
// owners and readers. Package secret has the rules for secrets. Callers pass the keys with which contents are
// sealed.
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

// Index lists the ids of the secrets of a unit or a service. A secret belongs to an owner only if it is in
// the owner's index. So a service that is deployed again does not own the secrets of the removed service with
// its name.
type Index struct {
	Owned    []string `json:"owned,omitempty"`
	Consumed []string `json:"consumed,omitempty"` // the secrets that the unit has read
	Granted  []string `json:"granted,omitempty"`  // the secrets that operators have granted to the service
}

// IndexOf reads the index of a unit or a service. Operators have an empty index.
func IndexOf(v *state.View, o secret.Owner) (Index, error) {
	key := indexKey(o)
	if key == "" {
		return Index{}, nil
	}
	return keyspace.LoadOrZero[Index](v.Keys(), key)
}

// indexKey returns the key of the owner's index, or "" for operators.
func indexKey(o secret.Owner) string {
	switch {
	case o.Unit != "":
		return keys.UnitSecrets(o.Unit)
	case o.Service != "":
		return keys.ServiceSecrets(o.Service)
	}

	return ""
}

// addToIndex adds the id to one of the lists of an owner's index.
func addToIndex(tx *state.Tx, o secret.Owner, list func(i *Index) *[]string, id string) error {
	return changeIndex(tx, o, list, id, true)
}

// removeFromIndex removes the id from one of the lists of an owner's index.
func removeFromIndex(tx *state.Tx, o secret.Owner, list func(i *Index) *[]string, id string) error {
	return changeIndex(tx, o, list, id, false)
}

// changeIndex adds the id to a list in an owner's index, or removes the id if contain is false. The function
// list chooses the list. changeIndex writes nothing if the list does not change, or if operators are the owner.
func changeIndex(tx *state.Tx, o secret.Owner, list func(i *Index) *[]string, id string, contain bool) error {
	isOperators := o == (secret.Owner{})
	if isOperators {
		return nil
	}

	index, err := IndexOf(tx.View, o)
	if err != nil {
		return err
	}
	ids := list(&index)
	if slices.Contains(*ids, id) == contain {
		return nil
	}

	*ids = slices.DeleteFunc(*ids, func(listed string) bool { return listed == id })
	if contain {
		*ids = append(*ids, id)
	}
	return tx.Keys().Put(indexKey(o), index)
}

// These functions choose a list of an index.
func ownedIDs(i *Index) *[]string    { return &i.Owned }
func consumedIDs(i *Index) *[]string { return &i.Consumed }
func grantedIDs(i *Index) *[]string  { return &i.Granted }

// Get reads the record of a secret. It returns [state.ErrNotFound] if there is no such secret.
func Get(v *state.View, id string) (secret.Record, error) {
	r, err := keyspace.LoadExisting[secret.Record](v.Keys(), keys.Secret(id), "secret %q not found", id)
	r.ID = id
	return r, err
}

// Read reads the records of secrets in one round trip, sorted by id, each once. It leaves out secrets that do not
// exist, and skips records that do not decode.
func Read(v *state.View, ids []string) (records []secret.Record, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 {
		return nil, nil
	}
	scope := Watch(ids) // the keys of the records
	if err := v.Keys().Prefetch(scope); err != nil {
		return nil, err
	}

	for _, id := range ids {
		r, err := Get(v, id)
		if errors.Is(err, state.ErrNotFound) || v.Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}

	return records, nil
}

// All reads the records of all secrets, sorted by id.
func All(v *state.View) ([]secret.Record, error) {
	return keyspace.LoadChildren(v.Keys(), keys.Secrets, func(r *secret.Record, id string) { r.ID = id })
}

// Watch returns the [state.Scope] of the records of secrets.
func Watch(ids []string) (s state.Scope) {
	for _, id := range ids {
		s.Keys = append(s.Keys, keys.Secret(id))
	}
	return s
}

// Put writes a secret's record. It adds a new secret to the index of its owner, and any secret to the indexes of its
// new consumers. It does not change the indexes of removed consumers. If AutoPrune is set, Put also removes
// revisions, except the newest, that no unit with access reads, at most maxRemovedContents of them. It deletes these
// revisions from r.Revisions.
func Put(tx *state.Tx, r secret.Record) error {
	before, known, err := keyspace.Load[secret.Record](tx.Keys(), keys.Secret(r.ID))
	if err != nil {
		return err
	}

	if !known {
		if err := addToIndex(tx, r.Owner, ownedIDs, r.ID); err != nil {
			return err
		}
	}

	for unit := range r.Consumers {
		if _, isListed := before.Consumers[unit]; isListed {
			continue
		}
		if err := addToIndex(tx, secret.Owner{Unit: unit}, consumedIDs, r.ID); err != nil {
			return err
		}
	}

	if r.AutoPrune {
		// All grants count as valid here, since Put does not read their relations.
		untracked := r.Untracked(func(string, secret.Grant) bool { return true })
		for _, n := range untracked[:min(len(untracked), maxRemovedContents)] {
			delete(r.Revisions, n)
			tx.Keys().Remove(keys.SecretContent(r.ID, n))
		}
	}

	return tx.Keys().Put(keys.Secret(r.ID), r)
}

// Grant lets a service read an operators' secret, or revokes this right if allow is false. It returns
// state.ErrNotFound if there is no such service.
func Grant(tx *state.Tx, r secret.Record, service string, allow bool) error {
	if _, err := tx.Service(service); err != nil {
		return err
	}

	g := secret.Grant{Relation: secret.NoRelation, Service: service}
	r.RemoveGrants(g) // all grants to the service and its units, in any relation
	if allow {
		r.AddGrant(g)
	}
	if err := changeIndex(tx, secret.Owner{Service: service}, grantedIDs, r.ID, allow); err != nil {
		return err
	}

	return Put(tx, r)
}

const (
	// maxRemovedContents limits the revisions that one Put prunes, and the contents that Remove removes together with
	// their secret. A sweep removes the other contents of a removed secret.
	maxRemovedContents = 100
	// maxChangedIndexes limits the number of services' indexes, and the number of units' indexes, from which the id
	// of a removed secret is removed. Further indexes keep the id, which is harmless, since no other secret gets
	// the same id.
	maxChangedIndexes = 100
)

// Remove removes a revision of a secret, and returns the remaining record. If revision is 0, or was the only one,
// it removes the secret: its record, its id in the owner's index, and at most maxRemovedContents contents. It then
// also removes the id from the indexes of at most maxChangedIndexes services to which operators have granted the
// secret, and as many units that track it. The constants say why the rest can stay.
func Remove(tx *state.Tx, r secret.Record, revision int) (secret.Record, error) {
	if revision != 0 {
		delete(r.Revisions, revision)
		tx.Keys().Remove(keys.SecretContent(r.ID, revision))
		if len(r.Revisions) > 0 {
			return r, Put(tx, r)
		}
	}

	if err := removeFromIndex(tx, r.Owner, ownedIDs, r.ID); err != nil {
		return r, err
	}

	// Only grants by operators are in the indexes of services.
	indexed := slices.DeleteFunc(slices.Clone(r.Grants), func(g secret.Grant) bool { return g.Relation != secret.NoRelation })
	for _, g := range indexed[:min(len(indexed), maxChangedIndexes)] {
		if err := removeFromIndex(tx, secret.Owner{Service: g.Service}, grantedIDs, r.ID); err != nil {
			return r, err
		}
	}

	readers := slices.Sorted(maps.Keys(r.Consumers))
	for _, unit := range readers[:min(len(readers), maxChangedIndexes)] {
		if err := removeFromIndex(tx, secret.Owner{Unit: unit}, consumedIDs, r.ID); err != nil {
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

const (
	// maxInlineBytes limits the sealed content that is stored in a record, in bytes. Larger content is stored
	// as a blob.
	maxInlineBytes = 48 << 10
	// maxInlineTotal limits the bytes that an update with contents in records writes in total. Further
	// contents are stored as blobs.
	maxInlineTotal = 512 << 10
)

// PutContent seals and writes the content of a record's newest revision. It does not write the record.
func PutContent(tx *state.Tx, by secret.Sealer, r secret.Record, c secret.Content) error {
	s, err := by.Seal(&r, r.Latest, c)
	if err != nil {
		return err
	}

	// In a record, the data is in base64 and needs more space, but less than twice as much.
	fits := len(s.Data) <= maxInlineBytes && tx.Keys().WrittenBytes()+2*len(s.Data) <= maxInlineTotal
	if !fits {
		s.Blob = tx.Keys().AddBlob(s.Data)
		s.Data = nil
	}
	return tx.Keys().Put(keys.SecretContent(r.ID, r.Latest), s)
}

// maxResealed is how many contents Reseal seals in one transaction.
const maxResealed = 20

// Reseal seals contents of a secret with the newest key of the ring, which must not be empty. It leaves out contents
// that are already sealed with that key. It seals at most maxResealed in one call, so call it again until n, the number
// of sealed contents, is 0. unopened lists the revisions that it has skipped, since they are damaged or no key in the
// ring opens them. Reseal returns state.ErrNotFound if there is no such secret.
func Reseal(tx *state.Tx, ring secret.Keyring, id string) (n int, unopened []int, err error) {
	r, err := Get(tx.View, id)
	if err != nil {
		return 0, nil, err
	}

	for _, revision := range slices.Sorted(maps.Keys(r.Revisions)) {
		due, err := isResealDue(tx, ring, r, revision)
		if err != nil {
			return n, unopened, err
		}
		if n == maxResealed {
			return n, unopened, nil // a further call seals the rest, if there is any
		}
		if !due {
			continue
		}

		c, err := Open(tx.View, ring, r, revision)
		if IsUnopened(err) {
			unopened = append(unopened, revision)
			continue
		}
		if err != nil {
			return n, unopened, err
		}

		// PutContent writes the content of the newest revision. r is a copy and is not written.
		r.Latest = revision
		n++
		if err := PutContent(tx, ring, r, c); err != nil {
			return n, unopened, err
		}
	}

	return n, unopened, nil
}

// isResealDue reports whether the revision has content that is not sealed with the newest key. The read is not a
// condition of the commit, since a secret with many revisions would need too many.
func isResealDue(tx *state.Tx, ring secret.Keyring, r secret.Record, revision int) (bool, error) {
	kv, err := tx.Keys().GetKV(keys.SecretContent(r.ID, revision))
	if err != nil {
		return false, err
	}
	if kv.Revision == 0 {
		return false, nil
	}

	// Content that does not decode is due, so that Reseal reports it as unopened.
	s, err := keyspace.Decode[secret.Sealed](kv)
	return err != nil || s.Key != ring[len(ring)-1].ID, nil
}

// IsUnopened reports whether an error of Open means that the content exists but cannot be opened: it was
// sealed with a key that is missing, or it is damaged.
func IsUnopened(err error) bool {
	return errors.Is(err, secret.ErrNoKey) || errors.Is(err, secret.ErrDamaged) || errors.Is(err, keyspace.ErrDamaged)
}

// Open reads and opens the content of a revision. It returns state.ErrNotFound if there is no such content, and an
// error for which IsUnopened is true if by does not have the key or the content is damaged.
func Open(v *state.View, by secret.Sealer, r secret.Record, revision int) (secret.Content, error) {
	s, err := keyspace.LoadExisting[secret.Sealed](v.Keys(), keys.SecretContent(r.ID, revision),
		"secret %q revision %d not found", r.ID, revision)
	if err != nil {
		return nil, err
	}
	if s.Blob != "" {
		s.Data, err = v.Keys().ReadBlob(s.Blob)
	}
	// If the blob does not exist, the content exists but is damaged.
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, keyspace.ErrDamaged) {
		return nil, keyspace.Refuse(secret.ErrDamaged, "cannot read secret %q: the store is damaged: %v", r.ID, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read secret %q: %w", r.ID, err)
	}

	return by.Open(&r, revision, s)
}
