// Package recorded runs recorded cases of hook tools: argv, exit code, stdout and stderr, byte for byte. It
// reads the cases from a file and compares the results. The caller decides how a tool runs: in this process,
// through a socket, or in a whole deployment.
package recorded

import (
	"encoding/json"
	"fmt"
	"os"

	"bijou/hookenv/hookapi"
)

// File is a file of cases.
type File struct {
	About    string             `json:"about"`
	Fixture  Fixture            `json:"fixture"`
	Files    map[string]string  `json:"files"`    // by name, in the caller's directory
	Contexts map[string]Context `json:"contexts"` // in addition to "relation" and "other"
	Cases    []Case             `json:"cases"`
}

// Fixture is the start of every case.
type Fixture struct {
	Dialect        hookapi.Dialect `json:"dialect"` // default: modern
	Unit           string          `json:"unit"`
	Charm          string          `json:"charm"` // default: the unit's service
	PrivateAddress string          `json:"private_address"`
	PublicAddress  string          `json:"public_address"`
	Leader         bool            `json:"leader"`
	Config         map[string]any  `json:"config"`
	Relations      []Relation      `json:"relations"`
}

// Relation is one relation of the fixture, as the local unit sees it. Units contains the settings of
// all current and departed members.
type Relation struct {
	ID       int                          `json:"id"`
	Name     string                       `json:"name"`
	Service  string                       `json:"service"` // the other service
	Units    map[string]map[string]string `json:"units"`
	App      map[string]map[string]string `json:"app"`
	Departed []string                     `json:"departed"`
	// The following fields have defaults: the other service for RemoteName and for the interface,
	// consumes (or peers) for the local role, and global for the scope.
	RemoteName string       `json:"remote-name"`
	Interface  string       `json:"interface"`
	Role       hookapi.Role `json:"role"`
	Scope      string       `json:"scope"`
	// Own is the service at the local unit's end, by default the local unit's service.
	Own string `json:"own"`
}

// Context is the hook that a case runs in.
type Context struct {
	Hook       string `json:"hook"`
	Relation   *int   `json:"relation"` // nil means no relation
	RemoteUnit string `json:"remote-unit"`
	Broken     bool   `json:"broken"`
	NoUnit     bool   `json:"no-unit"` // juju do without --unit
	Leader     bool   `json:"leader"`  // the local unit is the leader, even if the fixture contains a different one
}

// Case is one hook with the commands that it calls.
type Case struct {
	Context string `json:"context"`
	Run     []Step `json:"run"`
}

// Step is one command with its required result.
type Step struct {
	Argv         []string `json:"argv"`
	Stdin        *string  `json:"stdin"` // nil means /dev/null; otherwise it is a pipe
	Exit         int      `json:"exit"`
	Stdout       string   `json:"stdout"`
	Stderr       string   `json:"stderr"`
	StderrBegins string   `json:"stderr-begins"`
	// Writes are files that must have these contents afterwards.
	Writes map[string]string `json:"writes"`
}

// Read reads a file of cases.
func Read(path string) (File, error) {
	var f File
	data, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("cannot read recorded cases: %w", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("cannot read recorded cases in %q: %w", path, err)
	}
	return f, nil
}
