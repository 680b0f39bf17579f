package updater

import (
	"context"
	"slices"
	"strings"

	"bijou/state"
	"bijou/updater/record"
)

// fold is what the leader decides on, read once and kept current by what the store
// tells of workers, gates and presences, of which there are many. What is written
// seldom, or what the store does not tell, has all read again. What is in it may be
// old by the time that something is decided on it, so that nothing is written
// because of it but under conditions.
type fold struct {
	sight    *sight
	own      string
	behind   bool // it is to be read
	revision int64
	request  int64 // the revision at which the request was written
	s        Snapshot
}

func newFold(s *state.Keyspace, own string) *fold {
	k := Keys()
	return &fold{sight: newSight(s, k.AllConfig(), k.Infos(), k.Statuses(), k.AllContents(), k.Presences(), k.Inventories()), own: own, behind: true}
}

// catchUp brings it up to date.
func (f *fold) catchUp(ctx context.Context) error {
	n := f.sight.changed()
	f.behind = f.behind || n.all
	for _, c := range n.changes {
		f.behind = f.behind || !f.take(c)
	}
	if !f.behind {
		return nil
	}
	err := f.sight.store.View(ctx, f.read)
	f.behind = err != nil
	return err
}

// read reads it all.
func (f *fold) read(v *state.KeyView) (err error) {
	if f.s, err = Load(v, f.own); err != nil {
		return err
	}
	var r record.Request
	if f.request, err = v.GetAt(Keys().Current(), &r); err != nil {
		return err
	}
	f.revision, err = v.Revision()
	return err
}

// take is told a change, and says if that will do.
func (f *fold) take(c state.KeyChange) bool {
	k := Keys()
	switch {
	case c.Revision <= f.revision:
		return true // it was read
	case !c.Told():
		return false
	case c.Key == k.Gate():
		f.s.Gate = record.Gate{}
		return c.Deleted || c.Decode(&f.s.Gate) == nil
	case strings.HasPrefix(c.Key, k.Workers()):
		return keep(f.s.Workers, k.Workers(), c)
	case strings.HasPrefix(c.Key, k.Presences()):
		lrn, _ := record.Server(k.Presences(), c.Key)
		return !slices.Contains(f.s.Unseen, lrn) && keep(f.s.Present, k.Presences(), c)
	case strings.HasPrefix(c.Key, k.Inventories()):
		return keep(f.s.Inventories, k.Inventories(), c)
	}
	return false
}

// keep has the change in what is known of servers.
func keep[T any](known map[int]T, prefix string, c state.KeyChange) bool {
	lrn, ok := record.Server(prefix, c.Key)
	if !ok {
		return true
	}
	var doc T
	if !c.Deleted && c.Decode(&doc) != nil {
		return false // reading it says what is wrong
	}
	known[lrn] = doc
	if c.Deleted {
		delete(known, lrn)
	}
	return true
}
