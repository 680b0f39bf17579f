package keyspace

import (
	"errors"
	"fmt"
	"log/slog"
)

// ErrDamaged is the kind of the error for a record that does not decode.
var ErrDamaged = errors.New("the record does not decode")

// decodeError is an [ErrDamaged] that names the key.
type decodeError struct {
	key string
	err error
}

// Error returns the message.
func (e *decodeError) Error() string { return fmt.Sprintf("cannot decode %q: %v", e.key, e.err) }

// Unwrap returns what is wrong with the value.
func (e *decodeError) Unwrap() []error { return []error{ErrDamaged, e.err} }

// Skips reports whether a list goes on without the record that this error is about, since the record does not
// decode. Each list of records that agents write asks it: one agent's bad value must not stop the others, the leader
// and operators. The record is reported; see [Space.Damaged].
func (v *View) Skips(err error) bool {
	var damaged *decodeError
	if !errors.As(err, &damaged) {
		return false
	}

	if v.damage == nil {
		v.damage = map[string]error{}
	}
	v.damage[damaged.key] = damaged
	return true
}

// TakeDamage returns the errors of the records that lists of this view have passed over, by key. The caller shows
// them: they are not reported any more.
func (v *View) TakeDamage() map[string]error {
	taken := v.damage
	v.damage = nil
	return taken
}

// NewDamage returns an [ErrDamaged] for a record that decodes, and cannot be what its key says.
func NewDamage(key string, format string, args ...any) error {
	return &decodeError{key, fmt.Errorf(format, args...)}
}

// Skips is [View.Skips] for a job that goes through many records, each in a transaction of its own.
func (s *Space) Skips(err error) bool {
	var damaged *decodeError
	if !errors.As(err, &damaged) {
		return false
	}
	s.reportDamage(damaged.key, err)
	return true
}

// reportSkipped reports what the view has passed over.
func (s *Space) reportSkipped(v *View) {
	for key, err := range v.TakeDamage() {
		s.reportDamage(key, err)
	}
}

// reportDamage reports a key once.
func (s *Space) reportDamage(key string, err error) {
	if _, known := s.reported.LoadOrStore(key, true); known {
		return
	}

	if s.Damaged != nil {
		s.Damaged(err)
	} else {
		slog.Warn("goes on without a record that is damaged", "error", err)
	}
}
