package decide

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// roomReserve is what an update leaves free on each file system that it writes to, in bytes.
const roomReserve = 64 << 20

// maxRoomAge is how old what a server says of its room may be. What is older counts as unknown, so that
// a worker that can no longer look holds up nobody for ever.
const maxRoomAge = time.Hour

// NoRoom explains that servers have no room for the version that they would take next; nil if they
// have, if nobody knows, or if nothing would begin anyway.
func (s Snapshot) NoRoom(now time.Time) *record.NoRoom {
	if s.Current != nil && !s.Current.Succeeded() {
		return nil
	}

	s.Servers = s.seenServers()
	to, by, _ := s.dueVersion()
	if by == byRepair || by == byItself {
		return nil // it brings back what was there
	}

	lacks := s.Lacks(to, now)
	if len(lacks) == 0 {
		return nil
	}

	n := record.NoRoom{Version: to, Why: record.JoinLacks(lacks), At: now}
	for _, l := range lacks {
		n.Servers = append(n.Servers, l.Server)
	}
	n.Servers = record.Blame(record.SortServers(n.Servers))
	if s.isToldNoRoom(to) {
		n.At = s.ToldNoRoom.At
	}

	return &n
}

func (s Snapshot) isToldNoRoom(version string) bool {
	return s.ToldNoRoom != nil && release.Same(s.ToldNoRoom.Version, version)
}

// seenServers returns the registered servers whose worker was ever seen.
func (s Snapshot) seenServers() []int {
	return slices.DeleteFunc(slices.Clone(s.Servers), func(lrn int) bool {
		return slices.Contains(s.Unseen, lrn)
	})
}

// reportNoRoom returns the action that sends an alert about missing room, once for each version. It returns
// false if there is nothing to report.
func (s Snapshot) reportNoRoom(now time.Time) (Action, bool) {
	n := s.NoRoom(now)
	if n == nil || s.isToldNoRoom(n.Version) {
		return Action{}, false
	}

	alert := record.Alert{
		ID:      fmt.Sprintf("no-room-%s-%d", n.Version, now.UnixNano()),
		Kind:    record.AlertRefused,
		Version: n.Version,
		Servers: n.Servers,
		Message: withHint(n.String(), noRoomTrouble(*n).Hint),
		At:      now,
	}

	return Action{
		Verb:    Warn,
		Why:     n.String(),
		Changes: []updater.Change{updater.Put(keys.NoRoom, *n), updater.Put(keys.Alert(alert.ID), alert)},
	}, true
}

// roomIsKnownUntil returns when the first of the servers' words about their room becomes too old.
func (s Snapshot) roomIsKnownUntil(now time.Time) (at time.Time) {
	for _, lrn := range s.Servers {
		old := s.Inventories[lrn].At.Add(maxRoomAge)
		if len(s.Inventories[lrn].Room) > 0 && old.After(now) && (at.IsZero() || old.Before(at)) {
			at = old
		}
	}

	return at
}

// Lacks returns the file systems of servers that have less room than the version needs, as far as both are
// known. It counts only the room that an update takes for certain.
func (s Snapshot) Lacks(version string, now time.Time) (all []record.Lack) {
	n := s.Needs
	if n == nil || version == "" || !release.Same(n.Version, version) {
		return nil
	}
	if p := s.Published; p != nil && release.Same(p.Version, version) && record.Differ(p.Sums, n.Sums) {
		return nil // its files were replaced
	}

	for _, lrn := range s.Servers {
		p, alive := s.Present[lrn]
		i := s.Inventories[lrn]
		if alive && now.Before(i.At.Add(maxRoomAge)) {
			all = append(all, lacksOf(lrn, p, i, *n)...)
		}
	}

	return all
}

// lacksOf returns the places on one server's disks that have less room than the update needs there.
func lacksOf(lrn int, p record.Presence, i record.Inventory, n record.Needs) (all []record.Lack) {
	u := newRoomUse(i.Room)
	gets, _ := release.ParsePackage(p.Package)
	if !release.Same(p.Version, n.Version) {
		u.addRelease(gets, n.Packages[p.Package])
	}
	for _, f := range n.Files[gets.Arch] {
		u.addFile(f, i.Installed[f.Component])
	}

	for _, at := range slices.Sorted(maps.Keys(u.most)) {
		room := i.Room[at]
		if needed := u.most[at] + roomReserve; u.most[at] > 0 && needed > room.Free {
			all = append(all, record.Lack{Server: lrn, At: room.At, Needed: needed, Free: room.Free})
		}
	}

	return all
}

// roomUse follows how many bytes an update takes on each file system of a server.
type roomUse struct {
	at   map[string]int // by what is put there, which file system it is
	used map[int]int64
	most map[int]int64
}

// newRoomUse returns the use of the places, which is none at first.
func newRoomUse(rooms []record.Room) roomUse {
	u := roomUse{at: map[string]int{}, used: map[int]int64{}, most: map[int]int64{}}
	for i, r := range rooms {
		for _, what := range r.For {
			u.at[what] = i
		}
	}

	return u
}

// add takes room in the place for such files, or gives it back if size is negative. It ignores places of
// which nobody knows the room.
func (u roomUse) add(what string, size int64) {
	at, known := u.at[what]
	if !known {
		return
	}
	u.used[at] += size
	u.most[at] = max(u.most[at], u.used[at])
}

// addRelease follows the installation of the program: its package is unpacked, tried, and put in place
// of the one before. The package stays.
func (u roomUse) addRelease(p release.Package, size int64) {
	into := record.RoomProgram
	if p.Form == release.Deb {
		into = record.RoomPackages
	}
	u.add(record.RoomDownloads, size)
	u.add(record.RoomDownloads, size)
	u.add(into, size)
	u.add(into, -size)
	u.add(record.RoomDownloads, -size)
}

// addFile adds the room for a component's file: for the download and for the unpacked file. The component's
// former file and the download are removed then.
func (u roomUse) addFile(f record.NeededFile, installed string) {
	if installed == f.Sum {
		return
	}

	u.add(record.RoomDownloads, f.Size)
	u.add(f.Into, f.Size)
	u.add(record.RoomDownloads, -f.Size)
	if installed != "" {
		u.add(f.Into, -f.Size)
	}
}
