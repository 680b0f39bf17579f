package record

// Presence shows that a worker lives, its version, and whose it is.
type Presence struct {
	Version string `json:"version"`
	// Server is the place that the worker works from, its host's machine-id and its
	// folder, whatever LRN it was given, and Host the host's name.
	Server string `json:"server,omitempty"`
	Host   string `json:"host,omitempty"`
	Digests
}
