package state

import (
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// MaxKeptCharms is how many earlier charms a service keeps.
const MaxKeptCharms = 5

// KeptCharm is an earlier charm of a service, with which a unit was active. Its archive is kept, so that an
// operator can return to this charm.
type KeptCharm struct {
	Charm  string    `json:"charm"` // the charm's URL
	Origin Origin    `json:"origin"`
	Until  time.Time `json:"until,omitzero"` // when the service changed to a different charm
}

// Identity returns the charm's URL, which distinguishes the kept charms of a service.
func (k KeptCharm) Identity() any { return k.Charm }

// KeptCharms lists the charms that a service can return to, the latest first. It leaves out charms that no
// longer exist, since older binaries remove kept charms. It returns ErrNotFound if there is no such service.
func (v *View) KeptCharms(service string) (kept []KeptCharm, err error) {
	s, err := v.Service(service)
	if err != nil {
		return nil, err
	}

	for _, k := range s.Kept {
		exists, err := v.keys.HasUnguarded(keys.Charm(k.Charm))
		if err != nil {
			return nil, err
		}
		if exists {
			kept = append(kept, k)
		}
	}

	return kept, nil
}

// keep updates the kept charms of the service s before the service changes to the charm next. It puts the
// current charm first if a unit was active with that charm, and otherwise removes it. It also removes next, and
// drops the oldest charms beyond MaxKeptCharms. It does not write the service.
func (tx *Tx) keep(s *Service, next string, at time.Time) error {
	// The current charm is put first below, if at all. So an older entry of that charm must go.
	kept := slices.DeleteFunc(slices.Clone(s.Kept), func(k KeptCharm) bool {
		return k.Charm == s.Charm || k.Charm == next
	})

	active, err := tx.wasActive(*s)
	if err != nil {
		return err
	}
	if active {
		kept = slices.Insert(kept, 0, KeptCharm{Charm: s.Charm, Origin: s.Origin, Until: at.UTC()})
	}

	s.Kept = kept[:min(len(kept), MaxKeptCharms)]
	return nil
}

// wasActive reports whether a unit was active with the service's current charm. A unit counts as active if it
// has set the status active, or has started with a charm that does not set a status.
func (tx *Tx) wasActive(s Service) (bool, error) {
	kvs, err := tx.keys.ListUnguarded(keys.ServiceUnits(s.Name))
	if err != nil {
		return false, err
	}
	units, err := tx.DecodeUnits(kvs)
	if err != nil {
		return false, err
	}

	for _, u := range units {
		active, err := tx.wasActiveWith(u, s.Charm)
		if err != nil {
			return active, err
		}
		if active {
			return true, nil
		}
	}

	return false, nil
}

// wasActiveWith reports whether the unit is active with the charm, or was when it was last active.
func (tx *Tx) wasActiveWith(u Unit, charmURL string) (bool, error) {
	if u.ActiveWith == charmURL {
		return true, nil
	}
	// The status stays empty with a charm that does not set one.
	mayBeActive := u.Status.Status == workloadActive || u.Status.Status == ""
	if u.Charm != charmURL || !mayBeActive {
		return false, nil
	}

	// The status may come from an earlier charm, and a hook of the current charm may have failed.
	kv, err := tx.keys.GetKV(keys.Workflow(u.Name))
	if err != nil {
		return false, err
	}
	if kv.Revision == 0 { // the unit has no workflow
		return false, nil
	}

	w, err := keyspace.Decode[Workflow](kv)
	if tx.keys.Skips(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return w.Failure == nil && w.State == UnitStarted && w.Charm == charmURL, nil
}
