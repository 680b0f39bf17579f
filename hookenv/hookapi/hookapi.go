// Package hookapi is the interface through which a hook tool asks about the
// world: what a running hook may read and write, and nothing about how.
//
// hookenv/tools asks it; agent/hookctx implements it over state. It
// imports nothing of bijou. hookapitest states what an implementation must do.
package hookapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRelationNotFound: no relation has that id (any more).
	ErrRelationNotFound = errors.New("relation not found")
	// ErrUnknownUnit: that unit is not and never was in the relation, or does not exist.
	ErrUnknownUnit = errors.New("unknown unit")
	// ErrGone: the hook has ended; nothing more can be asked or written.
	ErrGone = errors.New("hook context gone")
	// ErrNotLeader: only the unit that leads the service may do this.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknownBinding: the charm has no endpoint of that name.
	ErrUnknownBinding = errors.New("unknown binding")
	// ErrNoAction: the hook is a hook, and no action.
	ErrNoAction = errors.New("not running an action")
	// ErrUnknownResource: the charm has no resource of that name, or nobody has given it a file.
	ErrUnknownResource = errors.New("unknown resource")
	// ErrSecretDenied: the unit may not read the secret, or not change it.
	ErrSecretDenied = errors.New("permission denied")
)

// Dialect names the generation of charms that the tools speak to (docs/reference/hook-tools.md).
type Dialect string

// The two dialects.
const (
	Classic Dialect = "classic"
	Modern  Dialect = "modern"
)

// Role is the part that one end plays in a relation.
type Role string

// The roles; charms write "requires" where the tools say "consumes".
const (
	Provides Role = "provides"
	Consumes Role = "consumes"
	Peers    Role = "peers"
)

// NoRelation is Facts.Relation outside relation hooks.
const NoRelation = -1

// Facts are known and fixed before the hook starts.
type Facts struct {
	Unit string // the local unit, "wordpress/0"; empty in `juju do` without --unit
	// Operator: it is not a hook but `juju do`, which may write for any unit, and reaches all
	// relations.
	Operator bool
	Service  string // its service
	Charm    string // its charm's name
	Model    string // the environment's uuid
	Hook     string // "db-relation-changed"
	Dialect  Dialect

	Relation      int    // the implied relation, or NoRelation
	RemoteUnit    string // the unit that caused the hook; empty in -broken
	RemoteService string
	Broken        bool // a -broken hook: the implied relation has no members any more
	Departing     string
	Storage       string   // the id of the one that the hook is about
	Members       []string // of the implied relation, as JUJU_MEMBERS
}

// Relation is one relation as both ends see it. Once read it stays the same for
// the life of the hook.
type Relation struct {
	ID        int
	Interface string
	Scope     string // "global" or "container"
	Ends      []End  // one for a peer relation, else the provider first
}

// End is one service's end of a relation.
type End struct {
	Service string
	Name    string // the relation's name in that service's charm
	Role    Role
	// Who is in, sorted by number; in the implied relation as JUJU_MEMBERS plus the local unit and
	// its peers.
	Units []string
}

// Node names one settings node: a unit's settings in a relation, or with
// Service set instead, that service's own (--app).
type Node struct {
	Relation int
	Unit     string
	Service  string
}

// Port is one opened range; From and To are 0 for icmp.
type Port struct {
	From, To int    // inclusive
	Protocol string // "tcp", "udp" or "icmp"
	Endpoint string // empty: all endpoints
}

// IsSameRange compares the ranges without their endpoints.
func (p Port) IsSameRange(o Port) bool {
	p.Endpoint = ""
	o.Endpoint = ""
	return p == o
}

// String writes a range as open-port takes it: "80/tcp", "100-200/udp", "icmp".
func (p Port) String() string {
	switch {
	case p.Protocol == "icmp":
		return "icmp"
	case p.From == p.To:
		return fmt.Sprintf("%d/%s", p.From, p.Protocol)
	}

	return fmt.Sprintf("%d-%d/%s", p.From, p.To, p.Protocol)
}

// PortConflict refuses to open or close a range: another that is open overlaps it.
type PortConflict struct {
	Unit    string // the unit that has the other one open; it may be the one that opens
	Open    Port   // the other one
	Want    Port
	Closing bool // Want was to be closed
}

// Error says which unit has opened the range, for the charm's author.
func (e *PortConflict) Error() string {
	if e.Closing {
		return fmt.Sprintf(
			"cannot close %v: it overlaps %v, which %s has open; a range is closed as it was opened",
			e.Want, e.Open, e.Unit,
		)
	}

	return fmt.Sprintf("cannot open %v: it overlaps %v, which %s has open on this machine",
		e.Want, e.Open, e.Unit)
}

// Status is a workload status: a word, a message, and data that the agent adds.
type Status struct {
	Status  string // "maintenance", "blocked", "waiting", "active"; "unknown" or "" as long as nobody has set one
	Message string
	Data    map[string]any
	Units   map[string]Status // of a service only: its units, by name
}

// Hook is all that the tools of one running hook may ask. Every method may be called from several
// goroutines (a hook may run tools in parallel), and answers ErrGone once the hook has ended.
type Hook interface {
	// Facts never changes and never fails.
	Facts() Facts
	Relations
	Settings
	Unit
	Leadership
	UnitState
	Surroundings
	Actions
	Resources
	Storages
	Secrets
}

// Relations answers which relations there are, and who is in them. In the modern dialect a hook
// sees only those that its own service is an endpoint of; in the classic one, all.
type Relations interface {
	// Relation describes a relation. It is read at the first call and then fixed.
	// ErrRelationNotFound, also for one that the hook cannot see.
	Relation(ctx context.Context, id int) (Relation, error)
	// RelationIDs lists the relations that the unit is in, ascending: those that it has entered and
	// not left, so that what is listed can be read and written. A name without number is a service
	// and stands for all its units: then its relations. The implied relation is always one of the
	// local unit's. Fixed after the first call for that name. ErrUnknownUnit.
	RelationIDs(ctx context.Context, unit string) ([]int, error)
}

// Settings reads and writes settings nodes. A node is read whole at its first
// use, a write included, and stays fixed but for own writes, which later reads
// see at once and everybody else after the hook's success. A hook reaches the relations that its
// own service is an endpoint of, an operator all: others are ErrRelationNotFound.
type Settings interface {
	// Settings returns a copy of the node's values with own writes applied. A unit that never was
	// in the relation: ErrUnknownUnit. One that has departed: its last settings. The own service's
	// node is its leader's to read, but in a peer relation: else ErrNotLeader.
	Settings(ctx context.Context, node Node) (map[string]string, error)
	// SetSettings merges changes into the node; a nil value deletes its key.
	// Nothing is visible outside before the hook has succeeded. A service's own
	// node is its leader's to change, and an operator's: else ErrNotLeader.
	SetSettings(ctx context.Context, node Node, changes map[string]*string) error
}

// Unit answers and changes what concerns the local unit (or, where a unit is
// an argument and the caller is `juju do`, that one; "" means the local one).
type Unit interface {
	// Config returns the service's settings with defaults applied; nil values
	// are unset options without default. Values are string, int64, float64 or bool.
	Config(ctx context.Context) (map[string]any, error)
	// Address returns the unit's private or public address; empty if it has none.
	Address(ctx context.Context, public bool) (string, error)
	// SetPort opens or closes a range of ports, which takes effect if the hook succeeds. It is no error to open
	// an open range, or to close a closed one. SetPort returns a *PortConflict if the range overlaps one that
	// another unit of the same machine has open; an equal range may be allowed where units have no machines. It
	// returns one too if a range to be opened overlaps another of the unit's own, or if a range to be closed
	// only overlaps one that the unit had open before the hook.
	SetPort(ctx context.Context, unit string, port Port, open bool) error
	// Ports returns what is open, own changes applied; icmp first, then by protocol and number.
	Ports(ctx context.Context) ([]Port, error)
	// Status returns the workload status of the unit, or of its service with its units.
	Status(ctx context.Context, ofService bool) (Status, error)
	// SetStatus takes effect at once, whatever the hook's exit code. The service's
	// is its leader's to set: ErrNotLeader.
	SetStatus(ctx context.Context, ofService bool, s Status) error
	// Log adds a line to the unit's log at once. Level is one of TRACE, DEBUG,
	// INFO, WARNING, ERROR, CRITICAL.
	Log(level, message string)
}

// SecretChange holds new values for a secret; the zero value of each leaves the old one.
type SecretChange struct {
	Content                    map[string][]byte
	Label, Description, Rotate string
	Expires                    time.Time
}

// SecretQuery names a secret by its id, or else by a label, and says which revision is wanted.
type SecretQuery struct {
	ID, Label string // with both the label is the unit's for it from then on
	Peek      bool   // the newest, just this time
	Refresh   bool   // the newest from now on
}

// SecretGrant lets a service that is in the relation, or one unit of it, read a secret.
type SecretGrant struct {
	Relation      int // NoRelation in a revocation: any
	Service, Unit string
}

// SecretInfo describes a secret to whoever manages it.
type SecretInfo struct {
	ID, Label, Description string
	Revision               int
	OfUnit                 bool // its owner is the unit, and not the service
	Rotation               string
	Rotates, Expires       time.Time // zero: never
	Grants                 []SecretGrant
}

// Secrets reads and changes secrets. A secret and what it holds is read at its first use, and
// stays fixed but for own changes, which later calls see at once and everybody else after the
// hook's success. What there is not is an error that says "not found"; what may not be read or
// changed is ErrSecretDenied. A service's secrets are its leader's to change: else ErrNotLeader.
type Secrets interface {
	// AddSecret makes a secret of the unit or of its service, and returns its id.
	AddSecret(ctx context.Context, ofUnit bool, change SecretChange) (id string, err error)
	// SetSecret changes a secret. The same content as before makes no revision.
	SetSecret(ctx context.Context, id string, change SecretChange) error
	// SecretContent returns the revision that the unit has read first, or refreshed to.
	SecretContent(ctx context.Context, q SecretQuery) (map[string][]byte, error)
	// GrantSecret lets the other service of a relation, or one unit of it, read the secret.
	GrantSecret(ctx context.Context, id string, g SecretGrant) error
	// RevokeSecret ends the grants that g names. An empty field of g matches every grant.
	RevokeSecret(ctx context.Context, id string, g SecretGrant) error
	// RemoveSecret removes a revision, or with 0 the secret.
	RemoveSecret(ctx context.Context, id string, revision int) error
	// CloudSpec returns how the cloud is reached, with the credential that the operators have
	// given, as Juju's JSON has it: ErrSecretDenied to a service that they do not trust.
	CloudSpec(ctx context.Context) (map[string]any, error)
	// SecretInfos describes the secrets that the unit manages, by id.
	SecretInfos(ctx context.Context) ([]SecretInfo, error)
}
