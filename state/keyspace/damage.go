package keyspace

import (
	"errors"
	"fmt"
	"log/slog"
)

// ErrDamaged is returned if a record does not decode.
var ErrDamaged = errors.New("cannot decode the record")

// decodeError is an error that names the key and wraps [ErrDamaged].
type decodeError struct {
	key string
	err error
}

// Error returns a message with the key and the decoder's error.
func (e *decodeError) Error() string { return fmt.Sprintf("cannot decode %q: %v", e.key, e.err) }

// Unwrap returns [ErrDamaged] and the error of the decoder.
func (e *decodeError) Unwrap() []error { return []error{ErrDamaged, e.err} }

// Skips returns true if err says that a record does not decode. The caller must then skip the record. Every
// function that lists records which agents write must call Skips, so that a bad value from one agent does not
// stop other agents, the leader or operators. The error is reported when the view ends; see [Space.Damaged].
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

// TakeDamage returns the errors of the records that this view's lists have skipped, by key. The caller must
// show them, since they are no longer reported to [Space.Damaged].
func (v *View) TakeDamage() map[string]error {
	taken := v.damage
	v.damage = nil
	return taken
}

// NewDamage returns an error for a damaged record, such as one that decodes but does not fit its key. The
// error wraps [ErrDamaged], and its message contains the key and the formatted text.
func NewDamage(key string, format string, args ...any) error {
	return &decodeError{key, fmt.Errorf(format, args...)}
}

// Skips does what [View.Skips] does, for a job that handles each record in a separate transaction. It reports the
// error immediately.
func (s *Space) Skips(err error) bool {
	var damaged *decodeError
	if !errors.As(err, &damaged) {
		return false
	}
	s.reportDamage(damaged.key, err)
	return true
}

// reportSkipped reports the records that the view's lists have skipped.
func (s *Space) reportSkipped(v *View) {
	for key, err := range v.TakeDamage() {
		s.reportDamage(key, err)
	}
}

// reportDamage reports a damaged record, unless its key was reported before.
func (s *Space) reportDamage(key string, err error) {
	if _, known := s.reported.LoadOrStore(key, true); known {
		return
	}

	if s.Damaged != nil {
		s.Damaged(err)
	} else {
		slog.Warn("continues without a damaged record", "error", err)
	}
}
