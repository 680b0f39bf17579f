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

// roomReserve is the number of bytes that an update leaves free on each file system to which it writes.
const roomReserve = 64 << 20

// maxRoomAge limits the age of a server's report about its free space. An older report is ignored, so that a
// worker that can no longer measure its free space does not block updates forever.
const maxRoomAge = time.Hour

// NoRoom explains which servers do not have enough free space for the next version. It returns nil if all
// servers have enough space, if their space or the version's need is unknown, if there is no version to install, if
// the next update is a repair, or while an update runs or is stopped.
func (s Snapshot) NoRoom(now time.Time) *record.NoRoom {
	// While an update runs or is stopped, no other update begins.
	if s.Current != nil && !s.Current.Succeeded() {
		return nil
	}

	s = s.withSeenServers()
	to, by, _ := s.dueVersion()
	if by == byRepair || by == byItself {
		// A repair only restores files of the installed version.
		return nil
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

// isToldNoRoom reports whether an alert has already reported missing space for the version.
func (s Snapshot) isToldNoRoom(version string) bool {
	return s.ToldNoRoom != nil && release.Same(s.ToldNoRoom.Version, version)
}

// withSeenServers returns the snapshot as if only those servers were registered whose worker has been seen at
// least once. An update only begins on these.
func (s Snapshot) withSeenServers() Snapshot {
	s.Servers = slices.DeleteFunc(slices.Clone(s.Servers), func(lrn int) bool {
		return slices.Contains(s.Unseen, lrn)
	})
	return s
}

// reportNoRoom returns the action that writes an alert about missing space, and records the alert. It returns false
// if NoRoom returns nil, or if the last recorded alert is about the same version.
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

// roomIsKnownUntil returns the earliest time at which one of the servers' reports about free space becomes too
// old. It returns zero if there is no valid report.
func (s Snapshot) roomIsKnownUntil(now time.Time) (at time.Time) {
	for _, lrn := range s.Servers {
		inventory := s.Inventories[lrn]
		expires := inventory.At.Add(maxRoomAge)
		isValid := len(inventory.Room) > 0 && expires.After(now)
		if isValid && (at.IsZero() || expires.Before(at)) {
			at = expires
		}
	}

	return at
}

// Lacks returns the servers' file systems that have less free space than the version needs. It leaves out servers
// without a live worker or a recent inventory, and file systems whose free space or whose need is unknown. It counts
// only space that the update is certain to need.
func (s Snapshot) Lacks(version string, now time.Time) (all []record.Lack) {
	n := s.Needs
	if n == nil || version == "" || !release.Same(n.Version, version) {
		return nil
	}
	p := s.Published
	wereFilesReplaced := p != nil && release.Same(p.Version, version) && record.Differ(p.Sums, n.Sums)
	if wereFilesReplaced {
		// The recorded needs are those of the previous files.
		return nil
	}

	for _, lrn := range s.Servers {
		presence, isAlive := s.Present[lrn]
		inventory := s.Inventories[lrn]
		if isAlive && now.Before(inventory.At.Add(maxRoomAge)) {
			all = append(all, lacksOf(lrn, presence, inventory, *n)...)
		}
	}

	return all
}

// lacksOf returns the file systems of one server that have less free space than the update needs there, including
// roomReserve.
func lacksOf(lrn int, p record.Presence, i record.Inventory, n record.Needs) (all []record.Lack) {
	u := newRoomUse(i.Room)
	// If the worker names no package, pkg is empty, and n lists no size and no files for it.
	pkg, _ := release.ParsePackage(p.Package)
	if !release.Same(p.Version, n.Version) {
		u.addRelease(pkg, n.Packages[p.Package])
	}
	for _, f := range n.Files[pkg.Arch] {
		u.addFile(f, i.Installed[f.Component])
	}

	for _, index := range slices.Sorted(maps.Keys(u.peak)) {
		peak := u.peak[index]
		// A file system to which the update writes nothing needs no reserve either.
		if peak == 0 {
			continue
		}

		room := i.Room[index]
		needed := peak + roomReserve
		if needed > room.Free {
			all = append(all, record.Lack{Server: lrn, At: room.At, Needed: needed, Free: room.Free})
		}
	}

	return all
}

// roomUse adds up how many bytes an update needs on each file system of a server. The keys of the maps used
// and peak are indexes of the server's rooms.
type roomUse struct {
	index map[string]int // the index of the file system, by element of Room.For
	used  map[int]int64  // the current use
	peak  map[int]int64  // the maximum use since the beginning
}

// newRoomUse returns a roomUse of the file systems in rooms, with nothing used yet.
func newRoomUse(rooms []record.Room) roomUse {
	u := roomUse{index: map[string]int{}, used: map[int]int64{}, peak: map[int]int64{}}
	for i, r := range rooms {
		for _, kind := range r.For {
			u.index[kind] = i
		}
	}

	return u
}

// add counts size bytes as used on the file system for files of a kind, which is an element of Room.For. A
// negative size frees them. It ignores files whose file system is unknown.
func (u roomUse) add(kind string, size int64) {
	index, isKnown := u.index[kind]
	if !isKnown {
		return
	}
	u.used[index] += size
	u.peak[index] = max(u.peak[index], u.used[index])
}

// addRelease follows the installation of the program from package p, step by step, so that u.peak includes what is
// needed only for a while. size is the size of the package. Its unpacked content and the previous program are assumed
// to be as large.
func (u roomUse) addRelease(p release.Package, size int64) {
	into := record.RoomProgram
	if p.Form == release.Deb {
		into = record.RoomPackages
	}

	// The package is downloaded, and then unpacked beside the download.
	u.add(record.RoomDownloads, size)
	u.add(record.RoomDownloads, size)

	// The new program is written before the previous one is removed, so for a moment there are both.
	u.add(into, size)
	u.add(into, -size)

	// The unpacked package is removed. The download stays.
	u.add(record.RoomDownloads, -size)
}

// addFile adds the space for the download of a component's file, and for the unpacked file. Then it frees the
// space of the download and of the component's previous file. installed is the digest of the previous file,
// or "" if there is none. If the file is installed already, addFile adds nothing.
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
