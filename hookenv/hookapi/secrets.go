package hookapi

import (
	"context"
	"time"
)

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
	// RevokeSecret ends the grants that g names; what is empty names any.
	RevokeSecret(ctx context.Context, id string, g SecretGrant) error
	// RemoveSecret removes a revision, or with 0 the secret.
	RemoveSecret(ctx context.Context, id string, revision int) error
	// CloudSpec returns how the cloud is reached, with the credential that the operators have
	// given, as Juju's JSON has it: ErrSecretDenied to a service that they do not trust.
	CloudSpec(ctx context.Context) (map[string]any, error)
	// SecretInfos describes the secrets that the unit manages, by id.
	SecretInfos(ctx context.Context) ([]SecretInfo, error)
}
