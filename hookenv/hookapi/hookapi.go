// Package hookapi is the interface between the hook tools and the running hook: everything that a hook can read
// and write.
//
// It contains no implementation, and does not depend on the rest of bijou. agent/hookctx implements it over
// the state. Package hookapitest tests the requirements for every implementation.
package hookapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRelationNotFound is returned if no relation has this id, or if the hook cannot see the relation.
	ErrRelationNotFound = errors.New("relation not found")
	// ErrUnknownUnit is returned if the unit or service does not exist, or if it was never in the relation.
	ErrUnknownUnit = errors.New("unknown unit")
	// ErrGone is returned after the hook has ended.
	ErrGone = errors.New("hook context gone")
	// ErrNotLeader is returned for a change that only the service's leader can make, if the unit does not lead.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknownBinding is returned if the charm does not have an endpoint of this name.
	ErrUnknownBinding = errors.New("unknown binding")
	// ErrNoAction is returned if the hook is not an action.
	ErrNoAction = errors.New("not running an action")
	// ErrUnknownResource is returned if the charm does not have a resource of this name, or if no file was
	// attached for it.
	ErrUnknownResource = errors.New("unknown resource")
	// ErrSecretDenied is returned if the unit has no permission to read or change the secret.
	ErrSecretDenied = errors.New("permission denied")
)

// Dialect is a generation of charms. It decides how the hook tools behave; see docs/reference/hook-tools.md.
type Dialect string

// The two dialects.
const (
	Classic Dialect = "classic"
	Modern  Dialect = "modern"
)

// Role is the role of one end of a relation.
type Role string

// The roles. The tools print "consumes" for the role that charms call "requires".
const (
	Provides Role = "provides"
	Consumes Role = "consumes"
	Peers    Role = "peers"
)

// NoRelation is the value of Facts.Relation outside relation hooks.
const NoRelation = -1

// Facts are the facts about a hook that do not change while it runs.
type Facts struct {
	Unit string // the local unit, "wordpress/0"; empty in `juju do` without --unit
	// Operator is true for `juju do`, which is not a real hook. It can write settings of all units, and reaches
	// all relations.
	Operator bool
	Service  string // the local unit's service
	Charm    string // the name of the local unit's charm
	Model    string // the environment's UUID
	Hook     string // the hook's name, "db-relation-changed"
	Dialect  Dialect

	Relation      int      // the implied relation, which the hook concerns, or NoRelation
	RemoteUnit    string   // the unit that caused the hook, if any
	RemoteService string   // the remote service of the implied relation
	Broken        bool     // the hook is a -broken hook, whose relation has no members left
	Departing     string   // the departing unit in a -departed hook
	Storage       string   // the id of the storage that the hook concerns, if any
	Members       []string // the remote members of the implied relation, as in JUJU_MEMBERS
}

// Relation describes a relation with its ends. Once a hook has read a relation, the description does not change until
// the end of the hook.
type Relation struct {
	ID        int
	Interface string
	Scope     string // "global" or "container"
	Ends      []End  // a peer relation has one end; in other relations the provider is first
}

// End is one service's end of a relation.
type End struct {
	Service string
	Name    string // the relation's name in the service's charm
	Role    Role
	// Units are the units that are in the relation, sorted by number. In the implied relation they are the
	// units of Facts.Members, the local unit and its peers.
	Units []string
}

// Node identifies a settings node in a relation: either the settings of one unit, or the settings of a service
// itself (--app). Either Unit or Service is set.
type Node struct {
	Relation int
	Unit     string
	Service  string
}

// Port is a range of ports. From and To are 0 for icmp.
type Port struct {
	From, To int    // inclusive
	Protocol string // "tcp", "udp" or "icmp"
	Endpoint string // the endpoint for which the range is open, or empty for all endpoints
}

// IsSameRange reports whether the ranges are equal, apart from their endpoints.
func (p Port) IsSameRange(other Port) bool {
	p.Endpoint = ""
	other.Endpoint = ""
	return p == other
}

// String returns the range in the form that open-port accepts, such as "80/tcp", "100-200/udp" or "icmp".
func (p Port) String() string {
	switch {
	case p.Protocol == "icmp":
		return "icmp"
	case p.From == p.To:
		return fmt.Sprintf("%d/%s", p.From, p.Protocol)
	}

	return fmt.Sprintf("%d-%d/%s", p.From, p.To, p.Protocol)
}

// PortConflict is the error for a range that cannot be opened or closed, since it overlaps an open range.
type PortConflict struct {
	Unit    string // the unit that has opened the range Open, possibly the hook's own unit
	Open    Port   // the open range that Want overlaps
	Want    Port   // the range to open or close
	Closing bool   // the call has tried to close Want, not to open it
}

// Error returns a message that names both ranges and the unit.
func (e *PortConflict) Error() string {
	if e.Closing {
		return fmt.Sprintf(
			"cannot close %v: it overlaps %v, which %s has open; close exactly the range that was opened",
			e.Want, e.Open, e.Unit,
		)
	}

	return fmt.Sprintf("cannot open %v: it overlaps %v, which %s has open on this machine",
		e.Want, e.Open, e.Unit)
}

// Status is a workload status: a word, a message, and data that the agent adds.
type Status struct {
	Status  string // "maintenance", "blocked", "waiting" or "active"; "unknown" or "" if it was never set
	Message string
	Data    map[string]any
	Units   map[string]Status // the status of each unit, by name; only set for a service
}

// Hook is everything that the tools of one running hook can call. Several goroutines can call its methods at once,
// since a hook can run tools in parallel. After the hook has ended, all methods except Facts and Log return
// ErrGone.
type Hook interface {
	// Facts returns the facts about the hook, which never change.
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

// Relations describes relations and their members. In the modern dialect a hook sees only the relations of its own
// service. In the classic dialect it sees all relations.
type Relations interface {
	// Relation describes a relation. It reads the relation at the first call, and later returns the same
	// result. It returns ErrRelationNotFound if the relation does not exist, or if the hook cannot see it.
	Relation(ctx context.Context, id int) (Relation, error)
	// RelationIDs returns the ids of the relations that the unit has entered and not left, in ascending
	// order. For the local unit it always includes the implied relation. For the name of a service it returns
	// all relations of the service. It reads the relations at the first call for that name, and later returns
	// the same result. It returns ErrUnknownUnit if the unit or service does not exist.
	RelationIDs(ctx context.Context, unit string) ([]int, error)
}

// Settings reads and writes settings nodes. The first access to a node, even a write, reads the whole node.
// Later calls return the same values, with the hook's own writes applied. Other hooks see these writes after
// the hook has succeeded. A hook reaches the relations of its own service, and an operator reaches all
// relations. For other relations the methods return ErrRelationNotFound.
type Settings interface {
	// Settings returns a copy of the node's values, with the hook's own writes applied. For a unit that has
	// left the relation it returns the unit's last settings. It returns ErrUnknownUnit for a unit that was never
	// in the relation. It returns ErrNotLeader for the settings of the local service itself, unless the local
	// unit leads or the relation is a peer relation.
	Settings(ctx context.Context, node Node) (map[string]string, error)
	// SetSettings merges changes into the node. A nil value deletes its key. It returns ErrNotLeader for the
	// settings of a service itself, unless the local unit leads that service or the caller is an operator.
	SetSettings(ctx context.Context, node Node, changes map[string]*string) error
}

// Unit reads and changes records of the local unit. If a method has a unit parameter, an operator can pass a
// different unit. An empty name stands for the local unit.
type Unit interface {
	// Config returns the values of the charm's options, with defaults applied. A value is a string, int64,
	// float64 or bool, or nil for an unset option without a default.
	Config(ctx context.Context) (map[string]any, error)
	// Address returns the unit's private or public address, or an empty string if the unit has none.
	Address(ctx context.Context, public bool) (string, error)
	// SetPort opens or closes a range of ports when the hook succeeds. It is not an error to open an open range,
	// or to close a closed one. SetPort returns a *PortConflict in three cases:
	//   - the range overlaps an open range of another unit on the same machine, except that equal ranges may
	//     be allowed if units do not have their own machines;
	//   - a range to open overlaps a different open range of the same unit;
	//   - a range to close overlaps, but does not equal, a range that was open before the hook.
	SetPort(ctx context.Context, unit string, port Port, open bool) error
	// Ports returns the unit's open ranges, with the hook's own changes applied. icmp comes first. The other
	// ranges are sorted by protocol and number.
	Ports(ctx context.Context) ([]Port, error)
	// Status returns the workload status of the unit. With ofService it returns the status of the service and of
	// all its units.
	Status(ctx context.Context, ofService bool) (Status, error)
	// SetStatus sets the status of the unit or its service at once, even if the hook fails later. It returns
	// ErrNotLeader for the service's status unless the unit leads.
	SetStatus(ctx context.Context, ofService bool, s Status) error
	// Log adds a line to the unit's log at once. The level is TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL.
	// After the hook has ended it does nothing.
	Log(level, message string)
}

// SecretChange contains new values for a secret. A zero field leaves the old value unchanged.
type SecretChange struct {
	Content                    map[string][]byte
	Label, Description, Rotate string
	Expires                    time.Time
}

// SecretQuery selects a secret by its id or label, and one of its revisions. Without Peek and Refresh it
// selects the revision that the unit tracks.
type SecretQuery struct {
	ID, Label string // if both are set, Label becomes the unit's label for the secret
	Peek      bool   // selects the latest revision, without tracking it
	Refresh   bool   // selects the latest revision, and tracks it from now on
}

// SecretGrant lets a service that is in the relation, or only one of its units, read a secret.
type SecretGrant struct {
	Relation      int // in a revocation, NoRelation matches all relations
	Service, Unit string
}

// SecretInfo describes a secret that the unit manages.
type SecretInfo struct {
	ID, Label, Description string
	Revision               int  // the latest revision
	OfUnit                 bool // the unit owns the secret; otherwise its service owns it
	Rotation               string
	Rotates, Expires       time.Time // zero if the secret never rotates or expires
	Grants                 []SecretGrant
}

// Secrets reads and changes secrets. The first access to a secret reads it. Later calls return the same values, with
// the hook's own changes applied. Other hooks see these changes after the hook has succeeded.
//
// For a secret or revision that does not exist, the methods return an error that contains "not found". They return
// ErrSecretDenied if the unit has no permission to read or change the secret. They return ErrNotLeader for a change
// of the service's secrets unless the unit leads.
type Secrets interface {
	// AddSecret creates a secret of the unit if ofUnit is true, or else of its service. It returns the secret's id.
	AddSecret(ctx context.Context, ofUnit bool, change SecretChange) (id string, err error)
	// SetSecret changes a secret. New content adds a revision, unless it equals the latest revision.
	SetSecret(ctx context.Context, id string, change SecretChange) error
	// SecretContent returns the content of the selected revision. At its first call for a secret, the unit
	// begins to track the latest revision.
	SecretContent(ctx context.Context, q SecretQuery) (map[string][]byte, error)
	// GrantSecret lets the remote service of a relation, or only one of its units, read the secret.
	GrantSecret(ctx context.Context, id string, g SecretGrant) error
	// RevokeSecret removes the grants that match g. An empty field of g matches every grant.
	RevokeSecret(ctx context.Context, id string, g SecretGrant) error
	// RemoveSecret removes a revision, or the whole secret if revision is 0. It returns nil if the secret or
	// revision does not exist.
	RemoveSecret(ctx context.Context, id string, revision int) error
	// CloudSpec returns the specification of the cloud, with the operators' credential, under the keys of Juju's
	// JSON. It returns ErrSecretDenied if the operators do not trust the service, or have set no credential.
	CloudSpec(ctx context.Context) (map[string]any, error)
	// SecretInfos describes the secrets that the unit manages, sorted by id.
	SecretInfos(ctx context.Context) ([]SecretInfo, error)
}
