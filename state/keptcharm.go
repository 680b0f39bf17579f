package state

import (
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// MaxKeptCharms is how many charms a service keeps beside the one that it runs.
const MaxKeptCharms = 5

// KeptCharm is a charm that a service has left after a unit was active with it. Its archive stays, for
// an operator who goes back.
type KeptCharm struct {
	Charm  string    `json:"charm"` // the URL
	Origin Origin    `json:"origin"`
	Until  time.Time `json:"until,omitzero"` // when the service left it
}

// Identity tells one from the next.
func (k KeptCharm) Identity() any { return k.Charm }

// KeptCharms lists the charms that a service can go back to, the latest first. It leaves out charms that no
// longer exist, since an older binary has removed them. It returns ErrNotFound if there is no such service.
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

// keep adds the charm that the service leaves to the kept ones, if a unit was active with it. It removes
// the charm that the service changes to.
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

// wasActive reports whether a unit has worked with the service's present charm. Such a unit has set the
// status active, or has started if the charm sets no status.
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

func (tx *Tx) worksWith(u Unit, charmURL string) (bool, error) {
	if u.ActiveWith == charmURL {
		return true, nil
	}
	mayBeActive := u.Status.Status == workloadActive || u.Status.Status == ""
	if u.Charm != charmURL || !mayBeActive {
		return false, nil
	}

	// The status may be older than the unit's present charm, and a hook of that may have failed.
	kv, err := tx.keys.GetKV(keys.Workflow(u.Name))
	if err != nil || kv.Revision == 0 {
		return false, err
	}
	w, err := keyspace.Decode[Workflow](kv)
	if tx.keys.Skips(err) {
		return false, nil
	}
	return w.Failure == nil && w.State == UnitStarted && w.Charm == charmURL, err
}
