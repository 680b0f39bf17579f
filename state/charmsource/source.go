// Package charmsource asks a store of charms four questions: which charms there are, what
// one charm has, which revision a wish means, and the bytes of a file. Charmhub's client is
// behind them. What its answers look like on the wire, nobody else knows.
//
// It knows no environment and decides nothing: a caller says what it wishes, and judges
// what there is. Only operators' commands ask a store, never an agent.
//
// A folder of charms (local:) is not a Source. An environment assigns its charms' revisions, and an archive holds its
// own: until then there are no bytes whose sum a release could have.
package charmsource

import (
	"context"
	"slices"
	"strings"
)

// Source is a store of charms. Its methods may be called at once, and again.
type Source interface {
	// Find returns the charms and bundles that the store finds for a query, the best first.
	Find(ctx context.Context, q Query) ([]Found, error)
	// Info returns all that the store says of a charm or bundle. ErrNotFound.
	Info(ctx context.Context, name, channel string) (Info, error)
	// Resolve returns the release that each wish means, in the order of the wishes. One request
	// asks for all. An Answer has its own error: ErrNotFound, *NoReleaseError.
	Resolve(ctx context.Context, wishes ...Wish) ([]Answer, error)
	// Fetch puts a file of a release at path, whole and with the size and sum that the store
	// has said, or leaves path alone. It returns the file's SHA-384, in hex.
	Fetch(ctx context.Context, f File, path string) (sha384 string, err error)
}

// TypeCharm and TypeBundle are the types of what a store has.
const (
	TypeCharm  = "charm"
	TypeBundle = "bundle"
)

// TypeFile is the type of resources that are files. Others are images for Kubernetes.
const TypeFile = "file"

// Query is what Find looks for. An empty query finds what the store features.
type Query struct {
	Text     string
	Category string
	Channel  string
	Type     string // TypeCharm, TypeBundle; empty: both
	Requires string // an interface
	Provides string // an interface
}

// Base is a system and an architecture, as ubuntu, 24.04 and amd64.
type Base struct {
	Name    string
	Version string // of the system
	Arch    string
}

// String returns the base as operators write it: ubuntu@24.04.
func (b Base) String() string { return b.Name + "@" + b.Version }

// anyArch is the architecture of what runs on all.
const anyArch = "all"

// HasArch reports whether the base is one of that architecture.
func (b Base) HasArch(arch string) bool { return b.Arch == arch || b.Arch == anyArch }

// Wish says which release is wanted of a charm.
type Wish struct {
	Name string
	ID   string // instead of the name

	Channel  string // empty: the bare risk stable, which is of the charm's default track
	Revision int    // of the charm; then neither channel nor base count. 0: the channel says it
	Arch     string
	Base     Base   // of the release; without a name: Resolve chooses one
	Also     []Base // that are right where Base has no release, the first one first
	// OrOther lets Resolve choose another base where the wanted one has no release.
	OrOther bool

	Have      int            // the revision that is there; 0: none is
	Resources map[string]int // revisions of resources that are wanted; others are as released
}

// chooseFrom returns the base to ask for among those that there are.
func (w Wish) chooseFrom(bases []Base) (Base, bool) {
	for _, b := range w.Also {
		isThere := func(other Base) bool { return other.String() == b.String() && other.HasArch(w.Arch) }
		if slices.ContainsFunc(bases, isThere) {
			return b, true
		}
	}
	if w.Base.Name != "" && !w.OrOther {
		return Base{}, false
	}
	return ChooseBase(bases, w.Arch)
}

// Answer is what a wish means.
type Answer struct {
	Release Release
	Err     error
}

// Release is a revision of a charm or bundle, in a channel or by its number.
type Release struct {
	Type     string
	ID       string
	Name     string
	Revision int
	Version  string
	Channel  string // where it was released to; empty: it was asked for by revision
	Base     Base   // that was asked for; without a name: none was
	Bases    []Base // it runs on
	File     File

	Metadata, Config, Actions string // YAML; may be empty, or {}

	Resources []Resource
}

// SupportsArch reports whether the release runs on that architecture.
func (r Release) SupportsArch(arch string) bool {
	return len(r.Bases) == 0 || slices.ContainsFunc(r.Bases, func(b Base) bool { return b.HasArch(arch) })
}

// Resource is a revision of a charm's resource.
type Resource struct {
	Name        string
	Type        string
	Filename    string
	Description string
	Revision    int
	Created     string // as the store writes it
	File        File
}

// File is what Fetch gets.
type File struct {
	What   string // for progress and errors: "charm mysql, revision 3"
	URL    string
	Size   int64  // in bytes
	SHA256 string // in hex
	SHA384 string // in hex; empty: the store does not say
}

// Found is an entry of Find.
type Found struct {
	Type      string
	ID        string
	Name      string
	Publisher string
	Summary   string
	Version   string
	Bases     []Base
	URL       string // of its page
}

// Info has all that a store says of a charm or bundle.
type Info struct {
	Found
	Title       string
	Description string
	License     string
	Tags        []string
	UsedBy      []string // bundles
	Charms      []string // of a bundle
	Channels    []ChannelRelease

	Metadata, Config string // YAML of the default release
}

// ChannelRelease is what a channel has for a base.
type ChannelRelease struct {
	Track, Risk, Branch string
	Released            string // as the store writes it
	Base                Base
	Revision            int
	Version             string
	Size                int64
	Bases               []Base // of the revision
}

// ChooseBase returns the base of that architecture to prefer: an Ubuntu LTS before others, then the
// newest.
func ChooseBase(bases []Base, arch string) (chosen Base, ok bool) {
	for _, b := range bases {
		if b.HasArch(arch) && (!ok || compareBases(b, chosen) > 0) {
			chosen = b
			ok = true
		}
	}
	return chosen, ok
}

func compareBases(a, b Base) int {
	if a.isLTS() != b.isLTS() {
		if a.isLTS() {
			return 1
		}
		return -1
	}
	return compareVersions(a.Version, b.Version)
}

// isLTS reports whether the base is a long-term release of Ubuntu: April of an even year.
func (b Base) isLTS() bool {
	year, month, _ := strings.Cut(b.Version, ".")
	return b.Name == "ubuntu" && month == "04" && len(year) == 2 && (year[1]-'0')%2 == 0
}

// compareVersions compares numbers with dots between them.
func compareVersions(a, b string) int {
	as := strings.Split(a, ".")
	bs := strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x := strings.TrimLeft(as[i], "0")
		y := strings.TrimLeft(bs[i], "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return len(as) - len(bs)
}
