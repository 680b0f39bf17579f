// Package charmsource gets charms from a store or from this host. A [Source] finds the release for a [Wish],
// and fetches the release's files. A [Store] is a source that can also be searched, and that describes charms.
//
// [Charmhub] is the client of a store, and is the only part that depends on the wire format. [Local] has the
// charms of a repository, and charms that are named by path.
//
// The package does not use environments and does not choose what to deploy. Its callers formulate wishes and
// judge the answers. Only operators' commands use a source, never an agent.
package charmsource

import (
	"context"
	"slices"
	"strings"

	"bijou/state/charm"
)

// Source is a source of charms. Its methods can be called concurrently, and are idempotent.
type Source interface {
	// Resolve returns an answer for each wish, in the order of the wishes. A store gets all wishes in one
	// request. The Err of an Answer can be ErrNotFound or a *NoReleaseError.
	Resolve(ctx context.Context, wishes ...Wish) ([]Answer, error)
	// Fetch writes a file of a release to path, and returns its SHA-384 sum in hex. It verifies the size and
	// sums that f gives. If it fails, it does not change path.
	Fetch(ctx context.Context, f File, path string) (sha384 string, err error)
}

// Store is a source that can be searched.
type Store interface {
	Source
	// Find returns the charms and bundles that match a query, the best matches first.
	Find(ctx context.Context, q Query) ([]Found, error)
	// Info returns the store's description of a charm or bundle. It returns ErrNotFound if the store does not
	// have it.
	Info(ctx context.Context, name, channel string) (Info, error)
}

// ResolveOne returns the release for one wish. It returns the error of [Source].Resolve or of the Answer.
func ResolveOne(ctx context.Context, s Source, w Wish) (Release, error) {
	answers, err := s.Resolve(ctx, w)
	if err != nil {
		return Release{}, err
	}
	return answers[0].Release, answers[0].Err
}

// TypeCharm and TypeBundle are the types of a store's entries.
const (
	TypeCharm  = "charm"
	TypeBundle = "bundle"
)

// TypeFile is the type of resources that are files. All other resources are images for Kubernetes.
const TypeFile = "file"

// Query selects the results of Find. An empty query selects the charms that the store features.
type Query struct {
	Text     string
	Category string
	Channel  string
	Type     string // TypeCharm or TypeBundle, or empty for both
	Requires string // an interface
	Provides string // an interface
}

// Base is a system and an architecture, such as ubuntu, 24.04 and amd64.
type Base struct {
	Name    string
	Version string // the system's version
	Arch    string
}

// String returns the base as operators write it, such as ubuntu@24.04.
func (b Base) String() string { return b.Name + "@" + b.Version }

// anyArch is the architecture of charms that run on all architectures.
const anyArch = "all"

// HasArch reports whether the base has that architecture.
func (b Base) HasArch(arch string) bool { return b.Arch == arch || b.Arch == anyArch }

// isValid reports whether each part of the base is empty or a word.
func (b Base) isValid() bool {
	isBad := func(part string) bool { return part != "" && !isWord(part) }
	return !slices.ContainsFunc([]string{b.Name, b.Version, b.Arch}, isBad)
}

// Wish selects a release of a charm.
type Wish struct {
	Name string // the name in the source; see [Local]
	ID   string // the id in the store; used instead of Name if Name is empty or Have is set

	Channel  string // empty for the risk stable in the charm's default track
	Revision int    // 0 for the channel's revision; with any other number, channel and base have no effect
	Arch     string
	Series   string // the series of a charm in a repository; empty for any
	Base     Base   // the release's base; without a name, Resolve chooses one
	Also     []Base // bases to use if Base has no release, in the order of preference
	// OrOther lets Resolve choose a different base if Base has no release.
	OrOther bool

	Have      int            // the revision that the caller has, or 0; if it is set, Revision must be 0
	Resources map[string]int // wanted revisions of resources, by name; all others stay as released
}

// chooseFrom returns the base to request next, from bases that have a release: the first of w.Also that is
// among them or, if the wish accepts other bases, the best one by [ChooseBase]. Only bases for the wished
// architecture count. ok is false if the wish accepts none of the bases.
func (w Wish) chooseFrom(bases []Base) (chosen Base, ok bool) {
	for _, b := range w.Also {
		// String leaves out the architecture.
		isWished := func(base Base) bool { return base.String() == b.String() && base.HasArch(w.Arch) }
		if slices.ContainsFunc(bases, isWished) {
			return b, true
		}
	}

	acceptsOthers := w.Base.Name == "" || w.OrOther
	if !acceptsOthers {
		return Base{}, false
	}
	return ChooseBase(bases, w.Arch)
}

// Answer is the result for a wish.
type Answer struct {
	Release Release
	Err     error
}

// Release is a revision of a charm or bundle.
type Release struct {
	Type     string
	ID       string
	Name     string
	Revision int
	Version  string
	Channel  string // empty if the wish has a revision, or the source has no channels
	Base     Base   // the wished base; its name is empty if the wish has none
	Bases    []Base // the bases on which the release runs
	File     File

	Metadata, Config, Actions string // YAML from a store; each can be empty or {}

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
	Created     string // in the store's format
	File        File
}

// File is a file that Fetch can fetch. It is a file of a store, or an archive that Fetch packs from a charm on this
// host.
type File struct {
	What   string // a description for progress and errors, such as "charm mysql, revision 3"
	URL    string // for a charm on this host, its absolute path
	Size   int64  // in bytes
	SHA256 string // in hex; empty for an archive that Fetch has not packed yet
	SHA384 string // in hex; empty if the source does not provide it

	// Charm has the files on this host that Fetch packs. It is nil for a file of a store.
	Charm *charm.Found
	// Revision is the revision that Fetch packs into the archive. 0 means the charm's own revision.
	Revision int
}

// Found is a result of Find.
type Found struct {
	Type      string
	ID        string
	Name      string
	Publisher string
	Summary   string
	Version   string
	Bases     []Base
	URL       string // the charm's page in the store
}

// Info is a store's description of a charm or bundle.
type Info struct {
	Found
	Title       string
	Description string
	License     string
	Tags        []string
	UsedBy      []string // the bundles that have the charm
	Charms      []string // the charms of a bundle
	Channels    []ChannelRelease

	Metadata, Config string // the default release's YAML
}

// ChannelRelease is a channel's release for a base.
type ChannelRelease struct {
	Track, Risk, Branch string
	Released            string // in the store's format
	Base                Base
	Revision            int
	Version             string
	Size                int64
	Bases               []Base // the bases on which the revision runs
}

// ChooseBase returns the best base with the architecture arch. It prefers an Ubuntu LTS to all other bases, and
// then a newer version. ok is false if no base has that architecture.
func ChooseBase(bases []Base, arch string) (chosen Base, ok bool) {
	for _, b := range bases {
		if b.HasArch(arch) && (!ok || compareBases(b, chosen) > 0) {
			chosen = b
			ok = true
		}
	}
	return chosen, ok
}

// compareBases returns a positive number if ChooseBase prefers a to b, a negative number if it prefers b, and
// otherwise 0.
func compareBases(a, b Base) int {
	if a.isLTS() != b.isLTS() {
		if a.isLTS() {
			return 1
		}
		return -1
	}
	return compareVersions(a.Version, b.Version)
}

// isLTS reports whether the base is a long-term release of Ubuntu. These releases come out in April of even
// years.
func (b Base) isLTS() bool {
	year, month, _ := strings.Cut(b.Version, ".")
	return b.Name == "ubuntu" && month == "04" && len(year) == 2 && (year[1]-'0')%2 == 0
}

// compareVersions compares versions such as 24.04, number by number. It returns a negative number if a is
// older than b, a positive number if a is newer, and otherwise 0.
func compareVersions(a, b string) int {
	as := strings.Split(a, ".")
	bs := strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		// Without leading zeros, the longer number is larger.
		numberA := strings.TrimLeft(as[i], "0")
		numberB := strings.TrimLeft(bs[i], "0")
		if len(numberA) != len(numberB) {
			return len(numberA) - len(numberB)
		}
		if order := strings.Compare(numberA, numberB); order != 0 {
			return order
		}
	}
	return len(as) - len(bs)
}
