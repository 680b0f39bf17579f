package secret

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Record has all data about a secret except its content.
type Record struct {
	ID          string              `json:"-"`
	Origin      string              `json:"origin"` // the UUID of the environment that created the secret; contents are sealed for this UUID
	Owner       Owner               `json:"owner,omitzero"`
	Label       string              `json:"label,omitempty"` // the owner's label; the name of an operators' secret
	Description string              `json:"description,omitempty"`
	Rotate      string              `json:"rotate,omitempty"`     // the rotation policy
	RotateAt    time.Time           `json:"rotate-at,omitzero"`   // when secret-rotate is due
	AutoPrune   bool                `json:"auto-prune,omitempty"` // remove revisions that no unit reads
	Latest      int                 `json:"latest"`               // the newest revision's number; never decreases in the store
	Revisions   map[int]Revision    `json:"revisions"`
	Grants      []Grant             `json:"grants,omitempty"`
	Consumers   map[string]Consumer `json:"consumers,omitempty"` // by unit
	Created     time.Time           `json:"created"`
	Updated     time.Time           `json:"updated"`
}

// Owner is the owner of a secret: a unit, or a service, whose leader manages the secret. If both fields are
// empty, the operators own it.
type Owner struct {
	Unit    string `json:"unit,omitempty"`
	Service string `json:"service,omitempty"`
}

// String returns the name of the unit or service, or "<model>" for operators.
func (o Owner) String() string {
	if o == (Owner{}) {
		return "<model>"
	}
	return o.Unit + o.Service
}

// Revision describes one revision of a secret's content.
type Revision struct {
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`
	DueAt    time.Time `json:"due-at,omitzero"`    // when secret-expired must run next
	Obsolete bool      `json:"obsolete,omitempty"` // secret-remove has run for the revision
}

// NoRelation is the value of Grant.Relation in a grant by operators.
const NoRelation = -1

// Grant lets a service, or one of its units, read a secret while the relation exists.
type Grant struct {
	Relation int    `json:"relation"`
	Service  string `json:"service,omitempty"`
	Unit     string `json:"unit,omitempty"` // empty means all units of the service
}

// Consumer records a unit that has read a secret.
type Consumer struct {
	Revision int    `json:"revision"`       // the revision that the unit reads until it refreshes
	Told     int    `json:"told,omitempty"` // the newest revision that the unit has read, or for which secret-changed has run
	Label    string `json:"label,omitempty"`
}

// AddRevision adds a revision, which becomes the newest one.
func (r *Record) AddRevision(now time.Time) {
	if r.Revisions == nil {
		r.Revisions = map[int]Revision{}
	}
	r.Latest = r.Latest + 1
	r.Updated = now
	r.Revisions[r.Latest] = Revision{Created: now}
}

// DropRevision removes the newest revision, which must not be in the store yet. Its number becomes free again.
// Units that track this revision then track the revision before it. Updated stays as it is.
func (r *Record) DropRevision() {
	delete(r.Revisions, r.Latest)
	r.Latest--

	for unit, c := range r.Consumers {
		c.Revision = min(c.Revision, r.Latest)
		c.Told = min(c.Told, r.Latest)
		r.Consumers[unit] = c
	}
}

// SetExpiry sets when the newest revision expires, which is also when secret-expired becomes due for it. It
// does nothing if that revision was removed.
func (r *Record) SetExpiry(at time.Time) {
	rev, exists := r.Revisions[r.Latest]
	if !exists {
		return
	}
	rev.Expires = at
	rev.DueAt = at
	r.Revisions[r.Latest] = rev
}

// SetRotation sets the rotation policy, which must be valid. If the policy changes, the new interval starts now.
func (r *Record) SetRotation(policy string, now time.Time) {
	if r.Rotate != policy {
		r.Rotate = policy
		// The policy is valid, so there is no error.
		r.RotateAt, _ = NextRotation(policy, now)
	}
}

// Track records that the unit reads this revision. An empty label does not change the unit's label.
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

// AddGrant adds a grant. A grant to a whole service replaces the grants to its units in that relation, or in
// all relations if g.Relation is NoRelation. AddGrant does not add a grant to a unit whose whole service has
// one in that relation.
func (r *Record) AddGrant(g Grant) {
	r.RemoveGrants(g)
	wider := Grant{Relation: g.Relation, Service: g.Service}
	if !slices.Contains(r.Grants, wider) {
		r.Grants = append(r.Grants, g)
	}
}

// RemoveGrants removes the grants that match g. An empty field of g, or NoRelation, matches any grant.
func (r *Record) RemoveGrants(g Grant) {
	r.Grants = slices.DeleteFunc(r.Grants, func(existing Grant) bool {
		return (g.Relation == NoRelation || existing.Relation == g.Relation) &&
			(g.Service == "" || existing.Service == g.Service) &&
			(g.Unit == "" || existing.Unit == g.Unit)
	})
}

// IsOwn reports whether the unit or its service owns the secret.
func (r *Record) IsOwn(unit string) bool {
	service, _, _ := strings.Cut(unit, "/")
	return r.Owner.Unit == unit || r.Owner.Service == service
}

// IsReadableBy reports whether the unit can read the secret. holds reports whether a grant is still valid for
// a unit.
func (r *Record) IsReadableBy(unit string, holds func(unit string, g Grant) bool) bool {
	service, _, _ := strings.Cut(unit, "/")
	return r.IsOwn(unit) || slices.ContainsFunc(r.Grants, func(g Grant) bool {
		return g.Service == service && (g.Unit == "" || g.Unit == unit) && holds(unit, g)
	})
}

// Untracked lists the revisions, except the newest, that no unit with access reads, sorted. holds reports
// whether a grant is still valid for a unit.
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

// LabelFor returns the label that a unit uses for the secret. If the unit has not set one, LabelFor returns
// the owner's label if the unit or its service owns the secret, and "" otherwise.
func (r *Record) LabelFor(unit string) string {
	if r.IsOwn(unit) {
		return cmp.Or(r.Consumers[unit].Label, r.Label)
	}
	return r.Consumers[unit].Label
}
