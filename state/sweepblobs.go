package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/state/store"
)

// sweepBlobs removes the blobs that nothing refers to and nobody has touched since
// before. Whoever writes one or a reference to it meanwhile touches it, and so keeps it.
// If only is not nil, other blobs are left alone.
func (s *State) sweepBlobs(ctx context.Context, before time.Time, only map[string]bool) error {
	heads, err := readView(ctx, s, (*View).unreferencedBlobs)
	if err != nil {
		return err
	}
	for sum, head := range heads {
		if !head.Touched.Before(before) || only != nil && !only[sum] {
			continue
		}
		if err := s.removeBlob(ctx, sum, head); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// removeBlob takes a blob away: from its readers first, then its chunks, then its head,
// all on condition that nobody else writes the head. Interrupted, it leaves a head for
// the next sweep.
func (s *State) removeBlob(ctx context.Context, sum string, head storedBlobHead) error {
	op, err := blobHeadOp(sum, blobHead{Size: head.Size}) // not touched for ages: a writer takes it over
	if err != nil {
		return err
	}
	unchanged := func() []store.Cond { return []store.Cond{{Key: op.Key, Revision: head.revision}} }
	if head.revision, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: []store.Op{op}}); err != nil {
		return err
	}
	var chunks []store.Op
	for n := 0; int64(n)*chunkSize < head.Size; n++ {
		chunks = append(chunks, store.Op{Key: chunkKey(sum, n), Delete: true, Quiet: true})
	}
	for ops := range slices.Chunk(chunks, maxRemovedKeys) {
		if _, err := s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: ops}); err != nil {
			return err
		}
	}
	last := []store.Op{{Key: op.Key, Delete: true, Quiet: true}}
	_, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: last})
	return err
}

func (v *View) unreferencedBlobs() (map[string]storedBlobHead, error) {
	used, err := v.referencedBlobs()
	if err != nil {
		return nil, err
	}
	kvs, err := v.list(blobHeadsPrefix)
	if err != nil {
		return nil, err
	}
	heads := map[string]storedBlobHead{}
	for _, kv := range kvs {
		sum := strings.TrimPrefix(kv.Key, blobHeadsPrefix)
		if used[sum] {
			continue
		}
		head, err := decode[blobHead](kv)
		if err != nil {
			return nil, err
		}
		heads[sum] = storedBlobHead{head, kv.Revision}
	}
	return heads, nil
}

func (v *View) referencedBlobs() (map[string]bool, error) {
	used := map[string]bool{}
	charms, err := v.Charms()
	if err != nil {
		return nil, err
	}
	for _, c := range charms {
		used[c.SHA256] = true
	}
	if err := v.addBlobsOfOperators(used); err != nil { // resources, actions
		return nil, err
	}
	if err := v.addBlobsOfTools(used); err != nil {
		return nil, err
	}
	for _, prefix := range []string{relationsPrefix, servicesPrefix, unitsPrefix} {
		if err := v.addBlobsBelow(prefix, used); err != nil {
			return nil, err
		}
	}
	return used, nil
}

func (v *View) addBlobsBelow(prefix string, used map[string]bool) error {
	kvs, err := v.list(prefix)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		if !holdsSettings(kv.Key) {
			continue
		}
		doc, err := decode[settingsDoc](kv)
		if err != nil {
			return err
		}
		used[doc.Blob] = true
	}
	return nil
}

func holdsSettings(key string) bool {
	parts := strings.Split(key, "/")
	switch {
	case len(parts) < 3:
		return false
	case parts[0]+"/" == relationsPrefix:
		return len(parts) > 3 && (parts[2] == "settings" || parts[2] == "apps")
	case parts[0]+"/" == servicesPrefix:
		return key == leaderSettingsKey(parts[1])
	}
	return len(parts) == 4 && parts[3] == "state"
}

func (v *View) addBlobsOfOperators(used map[string]bool) error {
	kvs, err := v.list(resourcesPrefix)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		r, err := decode[Resource](kv)
		if err != nil {
			return err
		}
		used[r.SHA256] = true
	}
	if kvs, err = v.list(actionsPrefix); err != nil {
		return err
	}
	for _, kv := range kvs {
		a, err := decode[Action](kv)
		if err != nil {
			return err
		}
		used[a.Output.Blob] = true
	}
	return nil
}

func (v *View) addBlobsOfTools(used map[string]bool) error {
	all, err := v.AllTools()
	for _, t := range all {
		used[t.SHA256] = true
	}
	return err
}
