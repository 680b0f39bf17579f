package record

// Target is a version that an operator asked for. It is offered until a release appears
// that is newer than Passed, the newest one when it was asked for.
type Target struct {
	Version   string `json:"version"`
	Downgrade bool   `json:"allow-downgrade,omitempty"`
	Passed    string `json:"passed,omitempty"`
	Sums      string `json:"sums,omitempty"` // the digest of its SHA256SUMS then
	Who       string `json:"who,omitempty"`
}
