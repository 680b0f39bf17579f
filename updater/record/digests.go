package record

// Digests are SHA-256 sums, in hexadecimal, of what a release consists of. "" is not
// known, which is no difference: programs of before knew none.
type Digests struct {
	Sums string `json:"sums,omitempty"` // of SHA256SUMS, as it was verified
	Plan string `json:"plan,omitempty"` // of the manifest in its canonical form
}

// Differ reports whether the digests are known and not the same.
func Differ(a, b string) bool { return a != "" && b != "" && a != b }

// ShortDigest is enough of a digest for people.
func ShortDigest(d string) string {
	if d == "" {
		return "unknown"
	}
	return d[:min(12, len(d))]
}

// Published is what the leader has found a release to consist of when it looked last.
type Published struct {
	Version string `json:"version"`
	Digests
}
