package record

import (
	"fmt"
	"time"
)

// Room is how much room one file system of a server has for the files of a release.
type Room struct {
	// At is a folder on it, as operators know it.
	At string `json:"at"`
	// For has what the worker puts there: the words below, or the folder beside which it unpacks archives.
	For []string `json:"for"`
	// Free is how many bytes an update may take, as df shows them, with those that the worker's own
	// downloads take: the next update uses these again, or removes them first.
	Free int64 `json:"free"`
}

// What a worker puts on a file system, beside archives.
const (
	RoomDownloads = "downloads" // what it downloads, and the release while it is tried
	RoomProgram   = "program"   // this program, if releases come as tarballs
	RoomPackages  = "packages"  // what dpkg installs
)

// Needs has how many bytes the files of a release take, as far as that is known, in info/needs.
type Needs struct {
	Version string `json:"version"`
	Sums    string `json:"sums,omitempty"` // the digest of its SHA256SUMS
	// Packages has the bytes of the release's own packages, as in deb/amd64.
	Packages map[string]int64 `json:"packages,omitempty"`
	// Files has the files of its components, by architecture, in the order in which they are fetched.
	Files map[string][]NeededFile `json:"files,omitempty"`
}

// NeededFile is a file that each server downloads for a component, and then unpacks or installs.
type NeededFile struct {
	Component string `json:"component"`
	Sum       string `json:"sum"`  // its SHA-256, as ShortDigest has it
	Size      int64  `json:"size"` // in bytes, as it is downloaded
	Into      string `json:"into"` // RoomPackages, or the folder beside which it is unpacked
}

// maxNeeds bounds a Needs, in bytes of JSON.
const maxNeeds = 32 << 10

// Bounded returns the needs if they fit into a record. If they are too many, it returns a record without
// any, which means that they are unknown.
func (n Needs) Bounded() Needs {
	if encodedSize(n) <= maxNeeds {
		return n
	}
	return Needs{Version: n.Version, Sums: n.Sums}
}

// NoRoom explains that servers have no room for the release that they would take next. The one in
// info/no-room is the one that was reported.
type NoRoom struct {
	Version string    `json:"version"`
	Servers []int     `json:"servers"` // as Blame has them
	Why     string    `json:"why"`
	At      time.Time `json:"at"` // when it was reported
}

// String returns for which release there is no room, and where.
func (n NoRoom) String() string { return fmt.Sprintf("no room for release %s: %s", n.Version, n.Why) }

// Lack is a file system of a server with less room than a release needs.
type Lack struct {
	Server       int
	At           string
	Needed, Free int64 // in bytes
}

// String describes the lack in MiB, so that the first number is always the larger one.
func (l Lack) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("server %d needs %d MiB at %s, where %d MiB are free",
		l.Server, (l.Needed+mib-1)/mib, l.At, l.Free/mib)
}

// maxLacks is how many lacks a text has.
const maxLacks = 3

// JoinLacks returns one text about the lacks: the first ones in full, and only the servers of the others.
func JoinLacks(all []Lack) string {
	text := ""
	var left []int
	for i, l := range all {
		switch {
		case i >= maxLacks:
			left = append(left, l.Server)
		case i > 0:
			text += "; " + l.String()
		default:
			text = l.String()
		}
	}

	if len(left) > 0 {
		text += "; too little room on server " + ListSomeServers(left) + " also"
	}
	return Shorten(text, MaxReason)
}
