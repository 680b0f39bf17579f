package record

import (
	"fmt"
	"strings"
	"time"
)

// Room is the free space on one file system of a server for the files of a release.
type Room struct {
	// At is a directory on the file system, under which operators know the file system.
	At string `json:"at"`
	// For lists the kinds of files that the worker writes there. An element is one of the constants below, or
	// the directory next to which the worker unpacks an archive.
	For []string `json:"for"`
	// Free is the number of bytes that an update can use. It is df's value plus the size of the worker's
	// own downloads, since the next update reuses or first removes them.
	Free int64 `json:"free"`
}

// The elements of Room.For, apart from the directories of archives.
const (
	RoomDownloads = "downloads" // downloads, and the unpacked release while it is tried
	RoomProgram   = "program"   // this program, if releases are tarballs
	RoomPackages  = "packages"  // packages that dpkg installs
)

// Needs has the sizes of a release's files, as far as they are known, in info/needs.
type Needs struct {
	Version string `json:"version"`
	Sums    string `json:"sums,omitempty"` // the digest of its SHA256SUMS
	// Packages has the sizes of the release's own packages in bytes. A key has the form of deb/amd64.
	Packages map[string]int64 `json:"packages,omitempty"`
	// Files has the files of the release's components by architecture, in the order in which they are
	// fetched.
	Files map[string][]NeededFile `json:"files,omitempty"`
}

// NeededFile is a file that each server downloads for a component and then unpacks or installs.
type NeededFile struct {
	Component string `json:"component"`
	Sum       string `json:"sum"`  // the file's SHA-256 digest, in the form of ShortDigest
	Size      int64  `json:"size"` // the size of the download in bytes
	Into      string `json:"into"` // RoomPackages, or the directory next to which the file is unpacked
}

// maxNeeds limits a Needs, in bytes of JSON.
const maxNeeds = 32 << 10

// Bounded returns n if it fits into a record. Otherwise it returns a Needs without sizes, which means that the
// sizes are unknown.
func (n Needs) Bounded() Needs {
	if encodedSize(n) <= maxNeeds {
		return n
	}
	return Needs{Version: n.Version, Sums: n.Sums}
}

// NoRoom explains that servers do not have enough free space for the next release. The record in info/no-room
// names the last release for which this was reported.
type NoRoom struct {
	Version string    `json:"version"`
	Servers []int     `json:"servers"` // as returned by Blame
	Why     string    `json:"why"`
	At      time.Time `json:"at"` // when this was reported
}

// String names the release, and the directories without enough free space.
func (n NoRoom) String() string {
	return fmt.Sprintf("not enough disk space for release %s: %s", n.Version, n.Why)
}

// Lack is a file system of a server that has less free space than a release needs.
type Lack struct {
	Server       int
	At           string
	Needed, Free int64 // in bytes
}

// String describes the lack in MiB. It rounds Needed up and Free down, so that the first number is always
// the larger one.
func (l Lack) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("server %d needs %d MiB in %s, where only %d MiB are free",
		l.Server, (l.Needed+mib-1)/mib, l.At, l.Free/mib)
}

// maxLacks is the maximum number of lacks that a text describes in full.
const maxLacks = 3

// JoinLacks returns one text about the lacks, shortened to MaxReason bytes. It describes the first maxLacks
// lacks in full. For all other lacks, it lists only the servers, as [ListSomeServers] does.
func JoinLacks(lacks []Lack) string {
	var parts []string
	var undescribed []int
	for i, l := range lacks {
		if i >= maxLacks {
			undescribed = append(undescribed, l.Server)
			continue
		}
		parts = append(parts, l.String())
	}

	if len(undescribed) > 0 {
		parts = append(parts, "also too little disk space on server "+ListSomeServers(undescribed))
	}
	return Shorten(strings.Join(parts, "; "), MaxReason)
}
