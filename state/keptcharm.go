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

// Identity distinguishes one kept charm from the next.
func (k KeptCharm) Identity() any { return k.Charm }

// KeptCharms lists the charms that a service can return to, the latest first. It leaves out charms that no
// longer exist, since older binaries remove kept charms. It returns ErrNotFound if there is no such service.
func (v *View) KeptCharms(service string) (kept []KeptCharm, err error) {
	s, err := v.Service(service)
	if err != nil {
		return nil, err
	}

	for _, k := range s.Kept {
		there, err := v.keys.HasUnguarded(keys.Charm(k.Charm))
		if err != nil {
			return nil, err
		}
		if there {
			kept = append(kept, k)
		}
	}

	return kept, nil
}

// keep adds the service's current charm to its kept charms, if a unit was active with that charm. It removes
// next, the charm to which the service changes, from them.
func (tx *Tx) keep(s *Service, next string, at time.Time) error {
	kept := slices.DeleteFunc(slices.Clone(s.Kept), func(k KeptCharm) bool {
		return k.Charm == s.Charm || k.Charm == next
	})

	was, err := tx.wasActive(*s)
	if err != nil {
		return err
	}
	if was {
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
		if works, err := tx.worksWith(u, s.Charm); err != nil || works {
			return works, err
		}
	}

	return false, nil
}

// worksWith reports whether the unit is, or last was, active with the charm.
func (tx *Tx) worksWith(u Unit, charmURL string) (bool, error) {
	if u.ActiveWith == charmURL {
		return true, nil
	}
	mayBeActive := u.Status.Status == workloadActive || u.Status.Status == ""
	if u.Charm != charmURL || !mayBeActive {
		return false, nil
	}

	// The status may come from an earlier charm, and a hook of the current charm may have failed.
	kv, err := tx.keys.GetKV(keys.Workflow(u.Name))
	if err != nil || kv.Revision == 0 {
		return false, err
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
