package record

// Digests are SHA-256 sums, in hexadecimal, of what a release consists of. "" is not
// known, which is no difference: former versions knew none.
type Digests struct {
	Sums string `json:"sums,omitempty"` // of SHA256SUMS, as it was verified
	Plan string `json:"plan,omitempty"` // of the manifest in its canonical form
}

// Differ reports whether the digests are known and not the same.
func Differ(a, b string) bool { return a != "" && b != "" && a != b }

// ShortDigest returns as much of a digest as people need.
func ShortDigest(d string) string {
	if d == "" {
		return "unknown"
	}
	return d[:min(12, len(d))]
}

// Published has the digests that the leader has found for a release at its last look.
type Published struct {
	Version string `json:"version"`
	Digests
}
