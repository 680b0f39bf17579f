package decide

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/keys"
	"bijou/updater/record"
)

const gib = 1 << 30

// roomy returns a fleet of servers of version 1.1 that are offered 1.2: a package of 1 GiB, and three files.
// Everything is on one file system with the given free space.
func roomy(free int64, change func(*Snapshot)) Snapshot {
	pkg := "tarball/" + runtime.GOARCH
	return base(func(s *Snapshot) {
		s.Release = "1.2"
		s.Published = &record.Published{Version: "1.2", Digests: record.Digests{Sums: "new"}, Checked: "1.1"}
		s.Needs = &record.Needs{
			Version: "1.2", Sums: "new", Packages: map[string]int64{pkg: gib},
			Files: map[string][]record.NeededFile{runtime.GOARCH: {
				{Component: "etcd", Sum: "e2", Size: 2 * gib, Into: "/usr/local"},
				{Component: "vault", Sum: "v2", Size: 3 * gib, Into: record.RoomPackages},
				{Component: "cke", Sum: "c1", Size: 50 * gib, Into: "/opt"},
			}},
		}
		s.Present, s.Inventories = map[int]record.Presence{}, map[int]record.Inventory{}
		for _, lrn := range s.Servers {
			s.Workers[lrn] = finished()
			s.Present[lrn] = record.Presence{Version: "1.1", Package: pkg}
			s.Inventories[lrn] = record.Inventory{
				At: t0(), Room: []record.Room{{At: "/var/lib/neco", For: []string{record.RoomDownloads, record.RoomPackages, record.RoomProgram, "/usr/local"}, Free: free}},
				Installed: map[string]string{"etcd": "e1", "vault": "v1", "cke": "c1"},
			}
		}
		if change != nil {
			change(s)
		}
	})
}

// inventory returns a change to server 1's inventory.
func inventory(change func(i *record.Inventory)) func(*Snapshot) {
	return func(s *Snapshot) {
		i := s.Inventories[1]
		change(&i)
		s.Inventories[1] = i
	}
}

// TestLacks checks the largest space that an update needs at one time, and which servers do not have it.
// Servers whose space is not known do not block the update.
func TestLacks(t *testing.T) {
	const needed = 7*gib + roomReserve // the release's package, and the largest file twice
	lack := func(lrn int, at string, needed, free int64) record.Lack {
		return record.Lack{Server: lrn, At: at, Needed: needed, Free: free}
	}
	apart := func(downloads, archives int64) func(*Snapshot) {
		return inventory(func(i *record.Inventory) {
			i.Room = []record.Room{
				{At: "/var", For: []string{record.RoomDownloads}, Free: downloads},
				{At: "/", For: []string{record.RoomPackages, record.RoomProgram}, Free: 100 * gib},
				{At: "/usr/local", For: []string{"/usr/local"}, Free: archives},
			}
		})
	}
	all := []record.Lack{lack(1, "/var/lib/neco", needed, needed-1), lack(2, "/var/lib/neco", needed, needed-1), lack(10, "/var/lib/neco", needed, needed-1)}
	for what, tt := range map[string]struct {
		s    Snapshot
		want []record.Lack
	}{
		"enough":                  {roomy(needed, nil), nil},
		"too little, by one byte": {roomy(needed-1, nil), all},
		"one server only":         {roomy(needed, inventory(func(i *record.Inventory) { i.Room[0].Free = 5 })), []record.Lack{lack(1, "/var/lib/neco", needed, 5)}},

		// Cases without the facts: servers do not report space, or the release's needs are unknown.
		"an older worker":              {roomy(0, func(s *Snapshot) { s.Inventories = map[int]record.Inventory{} }), nil},
		"an older leader":              {roomy(0, func(s *Snapshot) { s.Needs = nil }), nil},
		"the needs of another release": {roomy(0, func(s *Snapshot) { s.Needs.Version = "1.0" }), nil},
		"the needs of other files":     {roomy(0, func(s *Snapshot) { s.Needs.Sums = "old" }), nil},
		"needs that nobody could find": {roomy(0, func(s *Snapshot) { s.Needs = &record.Needs{Version: "1.2"} }), nil},
		"no worker lives":              {roomy(0, func(s *Snapshot) { s.Present = nil }), nil},
		"a word of long ago":           {roomy(needed-1, inventory(func(i *record.Inventory) { i.At = t0().Add(-maxRoomAge) })), all[1:]},
		"a place that nobody looks at": {roomy(needed, inventory(func(i *record.Inventory) { i.Installed["cke"] = "c0"; i.Room[0].Free += 50 * gib })), nil},
		"another architecture": {roomy(0, func(s *Snapshot) {
			for lrn, p := range s.Present {
				p.Package = "deb/other"
				s.Present[lrn] = p
			}
		}), nil},
		"a version of the same meaning": {roomy(needed-1, func(s *Snapshot) { s.Needs.Version = "1.02" }), all},

		// Cases with files that exist already, and with files that remain.
		"all files are installed":      {roomy(2*gib+gib+roomReserve, inventory(func(i *record.Inventory) { i.Installed = map[string]string{"etcd": "e2", "vault": "v2", "cke": "c1"} })), []record.Lack{lack(2, "/var/lib/neco", needed, 3*gib+roomReserve), lack(10, "/var/lib/neco", needed, 3*gib+roomReserve)}},
		"the release is there":         {roomy(needed-1, func(s *Snapshot) { s.Present[1] = record.Presence{Version: "1.2", Package: s.Present[1].Package} }), all[1:]},
		"two were never installed":     {roomy(needed, inventory(func(i *record.Inventory) { i.Installed = map[string]string{"cke": "c1"} })), []record.Lack{lack(1, "/var/lib/neco", needed+2*gib, needed)}},
		"downloads have their own":     {roomy(needed, apart(4*gib+roomReserve, 2*gib+roomReserve)), nil},
		"too little for downloads":     {roomy(needed, apart(4*gib+roomReserve-1, 100*gib)), []record.Lack{lack(1, "/var", 4*gib+roomReserve, 4*gib+roomReserve-1)}},
		"too little for an archive":    {roomy(needed, apart(100*gib, 2*gib)), []record.Lack{lack(1, "/usr/local", 2*gib+roomReserve, 2*gib)}},
		"a disk to which nothing goes": {roomy(needed, inventory(func(i *record.Inventory) { i.Room = append(i.Room, record.Room{At: "/full", For: []string{"/full"}}) })), nil},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.s.Lacks("1.2", t0())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNextWithoutRoom checks that an update does not begin while a server lacks space for it, that this is
// reported once, and that nothing else is delayed.
func TestNextWithoutRoom(t *testing.T) {
	told := func(s *Snapshot) { s.ToldNoRoom = &record.NoRoom{Version: "1.2", At: t0().Add(-time.Hour)} }
	for what, tt := range map[string]struct {
		s     Snapshot
		verb  Verb
		until time.Time
		why   string
	}{
		"it is reported":                         {roomy(gib, nil), Warn, time.Time{}, "not enough disk space for release 1.2: server 1 needs 7232 MiB in /var/lib/neco, where only 1024 MiB are free; server 2 needs"},
		"once":                                   {roomy(gib, told), Wait, t0().Add(maxRoomAge), "not enough disk space for release 1.2: server 1 needs"},
		"also while paused":                      {roomy(gib, func(s *Snapshot) { s.Pause = &record.Pause{} }), Warn, time.Time{}, "not enough disk space"},
		"of another release":                     {roomy(gib, func(s *Snapshot) { s.ToldNoRoom = &record.NoRoom{Version: "1.1.5"} }), Warn, time.Time{}, "not enough disk space"},
		"there is room again":                    {roomy(8*gib, told), Start, time.Time{}, "to 1.2 (release)"},
		"there always was":                       {roomy(8*gib, nil), Start, time.Time{}, "to 1.2 (release)"},
		"nobody knows":                           {roomy(gib, func(s *Snapshot) { s.Inventories = nil }), Start, time.Time{}, "to 1.2 (release)"},
		"a newer release, of which nobody knows": {roomy(gib, func(s *Snapshot) { s.Release, s.Published.Version = "1.3", "1.3" }), Start, time.Time{}, "to 1.3 (release)"},
		"an operator asks for it":                {roomy(gib, func(s *Snapshot) { told(s); s.Target = &record.Target{Version: "1.2"} }), Wait, t0().Add(maxRoomAge), "not enough disk space"},
		"after recover":                          {roomy(gib, func(s *Snapshot) { told(s); s.Current, s.Recovery = nil, &record.Recovery{} }), Wait, t0().Add(maxRoomAge), "not enough disk space"},
		"a server whose worker was never seen":   {roomy(8*gib, func(s *Snapshot) { inventory(func(i *record.Inventory) { i.Room[0].Free = 0 })(s); s.Unseen = []int{1} }), Start, time.Time{}, "update of 2 and 10 to 1.2"},
		"up to date":                             {roomy(gib, func(s *Snapshot) { s.Release = "1.1" }), Wait, time.Time{}, "up to date"},
		"it runs":                                {roomy(gib, func(s *Snapshot) { s.Current = request(func(r *record.Request) { r.Version = "1.2" }) }), Wait, t0().Add(5 * time.Minute), ""},
		"a stop":                                 {roomy(gib, func(s *Snapshot) { s.Current = ended(true) }), Wait, time.Time{}, "stopped"},
	} {
		t.Run(what, func(t *testing.T) {
			a := Next(tt.s, t0())
			if a.Verb != tt.verb || !strings.Contains(a.Why, tt.why) || tt.verb == Wait && what != "it runs" && !a.Until.Equal(tt.until) {
				t.Errorf("%s until %s: %q; want %s until %s: %q", a.Verb, a.Until, a.Why, tt.verb, tt.until, tt.why)
			}
			alerts, isTold := 0, false
			for _, c := range a.Changes {
				if strings.HasPrefix(c.Key, keys.Outbox) && strings.Contains(c.Key, "no-room") {
					alerts++
				}
				isTold = isTold || c.Key == keys.NoRoom && c.Value != nil
			}
			if want := a.Verb == Warn; isTold != want || alerts != map[bool]int{true: 1}[want] {
				t.Errorf("%d alerts, and recorded: %t", alerts, isTold)
			}
		})
	}
}

// TestNoRoomIsBounded checks that the record of servers without space is short, even if there are many such
// servers.
func TestNoRoomIsBounded(t *testing.T) {
	s := roomy(gib, nil)
	one, p := s.Inventories[1], s.Present[1]
	one.Room = []record.Room{{At: "/" + strings.Repeat("x", 200), For: one.Room[0].For, Free: 5}}
	s.Servers = nil
	for lrn := range 2000 {
		s.Servers = append(s.Servers, lrn)
		s.Present[lrn], s.Inventories[lrn] = p, one
	}
	a := Next(s, t0())
	if a.Verb != Warn {
		t.Fatalf("%s: %s", a.Verb, a.Why)
	}
	if n := writtenSize(t, a.Changes); n > 8<<10 {
		t.Errorf("it writes %d bytes", n)
	}
	text := s.NoRoom(t0()).Why
	if want := "too little disk space on server 3, 4, 5, "; !strings.Contains(text, want) || !strings.Contains(text, "and 1977 more") {
		t.Errorf("it says %q", text)
	}

	// The record of a release's needs is short too.
	var many []record.NeededFile
	for i := range 1000 {
		many = append(many, record.NeededFile{Component: fmt.Sprint("component-", i), Sum: "0123456789ab", Size: gib, Into: "/usr/local"})
	}
	n := record.Needs{Version: "1.2", Files: map[string][]record.NeededFile{"amd64": many}}.Bounded()
	if data, err := json.Marshal(n); err != nil || len(data) > 100 || n.Version != "1.2" {
		t.Errorf("%s, %v", data, err)
	}
}
