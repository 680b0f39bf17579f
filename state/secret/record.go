package secret

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Record is all that is known of a secret but its content.
type Record struct {
	ID          string              `json:"-"`
	Origin      string              `json:"origin"` // the uuid of the environment that made it, under which it is sealed
	Owner       Owner               `json:"owner,omitzero"`
	Label       string              `json:"label,omitempty"` // the owner's; of an operators' secret its name
	Description string              `json:"description,omitempty"`
	Rotate      string              `json:"rotate,omitempty"`   // the policy
	RotateAt    time.Time           `json:"rotate-at,omitzero"` // when secret-rotate is due
	AutoPrune   bool                `json:"auto-prune,omitempty"`
	Latest      int                 `json:"latest"` // revision; it grows only
	Revisions   map[int]Revision    `json:"revisions"`
	Grants      []Grant             `json:"grants,omitempty"`
	Consumers   map[string]Consumer `json:"consumers,omitempty"` // by unit
	Created     time.Time           `json:"created"`
	Updated     time.Time           `json:"updated"`
}

// Owner is the unit that manages a secret, or a service through its leader, or, if both are
// empty, the operators.
type Owner struct {
	Unit    string `json:"unit,omitempty"`
	Service string `json:"service,omitempty"`
}

func (o Owner) String() string {
	if o == (Owner{}) {
		return "<model>"
	}
	return o.Unit + o.Service
}

// Revision is one content of a secret.
type Revision struct {
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`
	DueAt    time.Time `json:"due-at,omitzero"`    // when secret-expired is next
	Obsolete bool      `json:"obsolete,omitempty"` // its secret-remove has run
}

// NoRelation is Grant.Relation of an operators' grant.
const NoRelation = -1

// Grant lets a service, or one unit of it, read a secret, as long as the relation exists.
type Grant struct {
	Relation int    `json:"relation"`
	Service  string `json:"service,omitempty"`
	Unit     string `json:"unit,omitempty"` // empty: all of the service
}

// Consumer is a unit that has read a secret.
type Consumer struct {
	Revision int    `json:"revision"`       // the one that it reads until it refreshes
	Told     int    `json:"told,omitempty"` // the one that its last secret-changed was for
	Label    string `json:"label,omitempty"`
}

// AddRevision adds a newest revision.
func (r *Record) AddRevision(now time.Time) {
	if r.Revisions == nil {
		r.Revisions = map[int]Revision{}
	}
	r.Latest = r.Latest + 1
	r.Updated = now
	r.Revisions[r.Latest] = Revision{Created: now}
}

// SetExpiry sets when the newest revision expires.
func (r *Record) SetExpiry(at time.Time) {
	rev := r.Revisions[r.Latest]
	rev.Expires = at
	rev.DueAt = at
	r.Revisions[r.Latest] = rev
}

// SetRotation changes the policy, from which on the time to the next rotation counts.
func (r *Record) SetRotation(policy string, now time.Time) {
	if r.Rotate != policy {
		r.Rotate = policy
		r.RotateAt, _ = NextRotation(policy, now) // whoever asked has checked the policy
	}
}

// Track makes a unit read the revision from now on. An empty label does not change the unit's label.
func (r *Record) Track(unit string, revision int, label string) {
	if r.Consumers == nil {
		r.Consumers = map[string]Consumer{}
	}
	was := r.Consumers[unit]
	r.Consumers[unit] = Consumer{
		Revision: revision,
		Told:     max(was.Told, revision),
		Label:    cmp.Or(label, was.Label),
	}
}

// AddGrant adds a grant. A wider one takes the place of those within it.
func (r *Record) AddGrant(g Grant) {
	if r.RemoveGrants(g); !slices.Contains(r.Grants, Grant{Relation: g.Relation, Service: g.Service}) {
		r.Grants = append(r.Grants, g)
	}
}

// RemoveGrants removes the grants that match g. An empty field of g, or NoRelation, matches any grant.
func (r *Record) RemoveGrants(g Grant) {
	r.Grants = slices.DeleteFunc(r.Grants, func(one Grant) bool {
		return (g.Relation == NoRelation || one.Relation == g.Relation) &&
			(g.Service == "" || one.Service == g.Service) &&
			(g.Unit == "" || one.Unit == g.Unit)
	})
}

// IsOwn reports whether the secret is the unit's, or its service's.
func (r *Record) IsOwn(unit string) bool {
	service, _, _ := strings.Cut(unit, "/")
	return r.Owner.Unit == unit || r.Owner.Service == service
}

// IsReadableBy reports whether the unit may read the secret. holds reports whether a grant
// still does for a unit.
func (r *Record) IsReadableBy(unit string, holds func(unit string, g Grant) bool) bool {
	service, _, _ := strings.Cut(unit, "/")
	return r.IsOwn(unit) || slices.ContainsFunc(r.Grants, func(g Grant) bool {
		return g.Service == service && (g.Unit == "" || g.Unit == unit) && holds(unit, g)
	})
}

// Untracked lists, in order, the revisions before the newest that nobody tracks.
func (r *Record) Untracked(holds func(unit string, g Grant) bool) (revisions []int) {
	used := map[int]bool{r.Latest: true}
	for unit, c := range r.Consumers {
		if r.IsReadableBy(unit, holds) {
			used[c.Revision] = true
		}
	}

	revisions = slices.Sorted(maps.Keys(r.Revisions))
	return slices.DeleteFunc(revisions, func(n int) bool { return used[n] })
}

// LabelFor returns the label by which a unit knows the secret: its own, or that of its owner.
func (r *Record) LabelFor(unit string) string {
	if r.IsOwn(unit) {
		return cmp.Or(r.Consumers[unit].Label, r.Label)
	}
	return r.Consumers[unit].Label
}
