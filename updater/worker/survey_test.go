package worker

import (
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestIsNews checks that a worker does not write its inventory too often, since free space changes all the
// time.
func TestIsNews(t *testing.T) {
	const gib = 1 << 30
	of := func(request int, free int64, differs ...string) record.Inventory {
		i := record.Inventory{Request: request, Differs: map[string][]string{}, Room: []record.Room{{At: "/", For: []string{record.RoomDownloads}, Free: free}}}
		for _, name := range differs {
			i.Differs[name] = []string{"gone"}
		}
		return i
	}
	for what, tt := range map[string]struct {
		last, now record.Inventory
		age       time.Duration
		want      bool
	}{
		"the first":                        {record.Inventory{}, of(0, gib), time.Hour, true},
		"it says nothing":                  {record.Inventory{}, record.Inventory{Differs: map[string][]string{}}, time.Hour, false},
		"the same":                         {of(1, gib), of(1, gib), inventoryInterval - 1, false},
		"the same, after a while":          {of(1, gib), of(1, gib), inventoryInterval, true},
		"another component":                {of(1, gib), of(1, gib, "a"), 0, true},
		"another request":                  {of(1, gib), of(2, gib), 0, true},
		"a little less room":               {of(1, gib), of(1, gib-gib/9), inventoryInterval - 1, false},
		"much less room":                   {of(1, gib), of(1, gib-gib/7), roomInterval, true},
		"much more room":                   {of(0, gib), of(0, 2*gib), roomInterval, true},
		"much more room, too soon":         {of(0, gib), of(0, 2*gib), roomInterval - 1, false},
		"twice as much of next to nothing": {of(0, minRoomChange/4), of(0, minRoomChange/2), roomInterval, false},
		"room is known no more":            {of(1, gib), record.Inventory{Request: 1, Differs: map[string][]string{}}, roomInterval, true},
	} {
		t.Run(what, func(t *testing.T) {
			if got := isNews(tt.last, tt.now, tt.age); got != tt.want {
				t.Errorf("%t, want %t", got, tt.want)
			}
		})
	}
}

// TestRoomBeforeAnyUpdate checks that a worker records free space as soon as its server is registered, with
// or without an update. While the space changes little, it records it only once.
func TestRoomBeforeAnyUpdate(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = plan()
		r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Config("survey-interval"), "1s") })
		f := &updatertest.Server{Rooms: []record.Room{{At: "/", For: []string{record.RoomDownloads}, Free: 1 << 30}}}
		r.worker(1, r.T.TempDir(), f, Options{})
		read := func() (i *record.Inventory) {
			err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
				i, err = updater.ReadKey[record.Inventory](v, keys.Inventory(1))
				return err
			})
			if err != nil {
				r.T.Fatal(err)
			}
			return i
		}
		time.Sleep(2 * time.Second) // long enough for a survey
		if i := read(); i != nil {
			r.T.Errorf("a server that is not registered has said %+v", i)
		}

		r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.BootServer(1), struct{}{}) })
		r.Eventually("it says how much room there is", func() bool { i := read(); return i != nil && i.Room[0].Free == 1<<30 })
		first := read()
		f.Set(func() { f.Rooms[0].Free = 1<<30 + 5 })
		time.Sleep(3 * time.Second)
		if now := read(); !now.At.Equal(first.At) {
			r.T.Errorf("it has written again after %s", now.At.Sub(first.At))
		}
	})
}

// TestRestsOnceItHasRead checks that a worker that has not yet read the request does not assume that no
// update runs.
func TestRestsOnceItHasRead(t *testing.T) {
	w := &worker{}
	w.noteFinished()
	if w.resting.Load() {
		t.Error("it rests before it has read anything")
	}
	w.readRevision = 1
	w.noteFinished()
	if !w.resting.Load() {
		t.Error("it does not rest, and no update runs")
	}
}
