package record

// Contents is the result of what one server did for all, in contents/<name>.
type Contents struct {
	Version string `json:"version"`
	Success bool   `json:"success"`

	Plan    string `json:"plan,omitempty"`    // the digest of the plan that asked for it
	Server  int    `json:"server,omitempty"`  // who did it
	Message string `json:"message,omitempty"` // why it failed
}
