package decide

import (
	"fmt"

	"bijou/updater/record"
	"bijou/updater/release"
)

// releaseDigests returns the digests of a request for that version, or why it cannot be
// made. Where no source of releases is configured there are none to compare.
func (s Snapshot) releaseDigests(to string) (d record.Digests, why string) {
	switch p, r := s.Published, s.Current; {
	case s.Config.GitHubRepository == "":
		return d, ""
	case s.Replaced() != "":
		return d, s.Replaced()
	case p != nil && release.Same(p.Version, to):
		return p.Digests, ""
	case r != nil && r.Sums != "" && release.Same(r.Version, to):
		return r.Digests, "" // what servers have may be published no more
	}
	return d, "it is not known yet which files release " + to + " consists of"
}

// Replaced explains that the files of the release that servers have, or were asked to
// take, are others now, so that it is another release by the same name; "" if they are
// not.
func (s Snapshot) Replaced() string {
	p, was := s.Published, ""
	if p == nil {
		return ""
	}
	if s.Current != nil && release.Same(s.Current.Version, p.Version) {
		was = s.Current.Sums
	}
	if t := s.Target; t != nil && t.Sums != "" && release.Same(t.Version, p.Version) {
		was = t.Sums
	}
	if !record.Differ(was, p.Sums) {
		return ""
	}
	return fmt.Sprintf("the files of release %s were replaced: the digest of its %s is %s now, not %s; publish them as another version, or take them as they are: neco update --to %s",
		p.Version, release.SumsFile, record.ShortDigest(p.Sums), record.ShortDigest(was), p.Version)
}

func (s Snapshot) acceptsReplacedFiles() bool {
	t, p, r := s.Target, s.Published, s.Current
	return t != nil && p != nil && t.Sums != "" && t.Sums == p.Sums && record.Differ(r.Sums, p.Sums) &&
		release.Same(t.Version, r.Version) && release.Same(p.Version, r.Version)
}
