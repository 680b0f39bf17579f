package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Service is a charm that was deployed, with any number of units.
type Service struct {
	Name        string        `json:"-"`
	Charm       string        `json:"charm"` // the URL of the charm its units are to run
	Origin      Origin        `json:"origin"`
	Series      string        `json:"series"`
	Exposed     bool          `json:"exposed,omitempty"`
	Subordinate bool          `json:"subordinate,omitempty"`
	Dialect     charm.Dialect `json:"dialect"`                // of its hooks: the operator's, else the charm's
	HookDialect charm.Dialect `json:"hook-dialect,omitempty"` // the operator's; empty: as the charm says
	DialectMark string        `json:"dialect-mark,omitempty"` // what decided Dialect, for people
	JujuVersion string        `json:"juju-version,omitempty"` // that its hooks are promised; empty: bijou's
	ForceSeries bool          `json:"force-series,omitempty"` // also charms that do not support the series
	Force       bool          `json:"force,omitempty"`        // also charms that need what bijou does not have
	Trusted     bool          `json:"trusted,omitempty"`      // with the cloud's credential
	Life        Life          `json:"life"`

	// Kept are the charms that the service has left and can go back to, the last first.
	Kept []KeptCharm `json:"kept,omitempty"`

	ResourcesVersion int64 `json:"resources-version,omitempty"` // one higher with each that is given

	Constraints constraints.Value `json:"constraints,omitzero"` // of units to come, over the environment's

	Storage map[string]charm.Directive `json:"storage,omitempty"` // what each unit to come gets, by the charm's names
}

// Origin is where the charm was taken from, and where newer ones are looked for.
type Origin struct {
	Repository string `json:"repository,omitempty"` // a folder of charms; empty if Path is the charm itself
	Path       string `json:"path,omitempty"`
	Series     string `json:"series,omitempty"`
	Name       string `json:"name,omitempty"`

	Store    string `json:"store,omitempty"`    // StoreCharmhub; empty: the charm is a folder's or an archive's
	ID       string `json:"id,omitempty"`       // the charm's in the store
	Revision int    `json:"revision,omitempty"` // the store's number for what the service is to run
	Channel  string `json:"channel,omitempty"`  // that is followed: 14/stable
	Base     string `json:"base,omitempty"`     // that the release is for: ubuntu@22.04
}

// StoreCharmhub is the store of charms that Origin and StoreCharm name.
const StoreCharmhub = "charmhub"

// String returns the place that status shows.
func (o Origin) String() string { return cmp.Or(o.Store, o.Repository, o.Path) }

// PromisedVersion returns the version of Juju that the service's hooks see.
func (s Service) PromisedVersion() string { return cmp.Or(s.JujuVersion, charm.JujuVersion) }

// DialectOf returns the dialect of that charm's hooks in this service: during an
// upgrade, units run several charms.
func (s Service) DialectOf(c Charm) charm.Dialect { return cmp.Or(s.HookDialect, c.Dialect) }

func (s *Service) setDialect(c Charm) {
	s.Dialect, s.DialectMark = c.Dialect, c.DialectMark
	if s.HookDialect != "" {
		s.Dialect, s.DialectMark = s.HookDialect, "--hook-dialect says so"
	}
}

// MissingError refuses a charm that needs what bijou does not have; it can be forced.
type MissingError struct{ reason string }

func (e *MissingError) Error() string { return e.reason }

// CheckMissing returns a *MissingError if the charm needs a feature that bijou lacks, unless an operator
// has forced it.
func (s Service) CheckMissing(c Charm) error {
	required, _ := charm.Unsupported(&c.Meta, s.PromisedVersion())
	if s.Force || len(required) == 0 {
		return nil
	}
	return &MissingError{fmt.Sprintf("charm %q needs %s, which this version of bijou does not have",
		c.URL, strings.Join(required, ", "))}
}

// AddService adds a service without units, with its configuration, as SetConfig takes it, and its peer
// relations. If s has no series it gets that of the charm's URL. Facts that the charm decides, such as
// Subordinate, are taken from the charm. It returns ErrExists if the name is taken, and ErrNotFound if
// there is no such charm.
func (tx *Tx) AddService(s Service, config map[string]any) (_ Service, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add application %q: %w", s.Name, err)
		}
	}()

	if err := charm.CheckService(s.Name); err != nil {
		return Service{}, err
	}
	ch, err := tx.Charm(s.Charm)
	if err != nil {
		return Service{}, err
	}

	s.Series = cmp.Or(s.Series, ch.URL.Series)
	s.Subordinate = ch.Meta.Subordinate
	s.Life = Alive
	s.setDialect(ch)

	// All that is in the way is named at once.
	taken := tx.checkNameFree(s.Name)
	series := tx.checkSeries(s, ch)
	if err := errors.Join(taken, series, s.CheckMissing(ch), s.checkConstraints()); err != nil {
		return Service{}, err
	}

	if s.Storage, err = ChooseStorage(ch.Meta, s.Storage); err != nil {
		return Service{}, err
	}
	if err := tx.keys.Put(keys.Service(s.Name), s); err != nil {
		return Service{}, err
	}
	if _, err := tx.setConfig(s.Name, config, true); err != nil {
		return Service{}, err
	}

	return s, tx.addPeerRelations(s.Name, ch)
}

// checkNameFree refuses a name that is taken, also by a service that is still going.
func (tx *Tx) checkNameFree(name string) error {
	old, ok, err := keyspace.Load[Service](tx.keys, keys.Service(name))
	switch {
	case err != nil:
		return err
	case ok && old.Life != Alive:
		return refuse(ErrExists, "it is still being destroyed: wait until it is gone, or give another name")
	case ok:
		return refuse(ErrExists, "it exists already")
	}

	return nil
}

// Service reads a service. ErrNotFound.
func (v *View) Service(name string) (Service, error) {
	s, err := keyspace.LoadExisting[Service](v.keys, keys.Service(name), "application %q not found", name)
	s.Name = name
	return s, err
}

// Services reads all services, by name.
func (v *View) Services() ([]Service, error) {
	return keyspace.LoadChildren(v.keys, keys.Services, func(s *Service, name string) { s.Name = name })
}

// AliveService returns ErrDead for a service that is going.
func (v *View) AliveService(name string) (Service, error) {
	s, err := v.Service(name)
	if err != nil {
		return s, err
	}
	if s.Life != Alive {
		return s, refuse(ErrDead, "application %q is %s", name, s.Life)
	}

	return s, nil
}

// CharmOf reads the charm of that URL; empty: the service's.
func (v *View) CharmOf(service, url string) (Charm, error) {
	s, err := v.Service(service)
	if err != nil {
		return Charm{}, err
	}
	return v.Charm(cmp.Or(url, s.Charm))
}

// SetExposed marks a service as reachable from outside, or not.
func (tx *Tx) SetExposed(name string, exposed bool) error {
	s, err := tx.AliveService(name)
	if err != nil || s.Exposed == exposed {
		return err
	}
	s.Exposed = exposed
	return tx.keys.Put(keys.Service(name), s)
}

// SetTrusted lets a service's units have the cloud's credential, or not; they run config-changed.
func (tx *Tx) SetTrusted(name string, trusted bool) error {
	s, err := tx.AliveService(name)
	if err != nil || s.Trusted == trusted {
		return err
	}
	config, err := tx.Config(name)
	if err != nil {
		return err
	}

	s.Trusted = trusted
	if err := tx.keys.Put(keys.Service(name), s); err != nil {
		return err
	}
	return tx.keys.Put(keys.Config(name), config.nextDoc())
}

// ServiceStatus reads the workload status that a unit set for its whole service;
// the zero WorkloadStatus if none did.
func (v *View) ServiceStatus(name string) (WorkloadStatus, error) {
	return keyspace.LoadOrZero[WorkloadStatus](v.keys, keys.ServiceStatus(name))
}

// SetServiceStatus sets a service's workload status. ErrNotFound if the service is gone.
func (tx *Tx) SetServiceStatus(name string, w WorkloadStatus) error {
	if _, err := tx.Service(name); err != nil {
		return err
	}
	w.Message = Truncate(w.Message, maxMessageBytes)
	return tx.keys.Put(keys.ServiceStatus(name), w)
}

// Bindings lists the names that a service can bind to a network: the charm's relations and extra bindings,
// sorted. charmURL names the charm; empty for the service's.
func (v *View) Bindings(service, charmURL string) ([]string, error) {
	ch, err := v.CharmOf(service, charmURL)
	if err != nil {
		return nil, err
	}

	names := slices.Clone(ch.Meta.ExtraBindings)
	for _, r := range ch.Meta.Relations() {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
