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

// Service is a deployed charm, with any number of units. Users see it as an application.
type Service struct {
	Name        string `json:"-"`
	Charm       string `json:"charm"` // the URL of the charm that its units must run
	Origin      Origin `json:"origin"`
	Series      string `json:"series"`
	Exposed     bool   `json:"exposed,omitempty"`
	Subordinate bool   `json:"subordinate,omitempty"`

	// Dialect is the dialect of the service's hooks: HookDialect if that is set, and otherwise the charm's.
	Dialect charm.Dialect `json:"dialect"`
	// HookDialect is the dialect that the operator has set. It is empty if the charm decides.
	HookDialect charm.Dialect `json:"hook-dialect,omitempty"`
	// DialectMark is the reason for the Dialect, as status shows it: a part of the charm, or an option.
	DialectMark string `json:"dialect-mark,omitempty"`
	// JujuVersion is the version of Juju that the service's hooks see. Empty means bijou's default.
	JujuVersion string `json:"juju-version,omitempty"`
	// ForceSeries accepts charms that do not support the service's series.
	ForceSeries bool `json:"force-series,omitempty"`
	// Force accepts charms that need features which bijou lacks.
	Force bool `json:"force,omitempty"`
	// Trusted gives the service's units access to the cloud's credential.
	Trusted bool `json:"trusted,omitempty"`
	Life    Life `json:"life"`

	// Kept has the charms that the service ran before and can go back to, the latest first.
	Kept []KeptCharm `json:"kept,omitempty"`

	// ResourcesVersion grows with each resource that the service gets.
	ResourcesVersion int64 `json:"resources-version,omitempty"`

	// Constraints are the constraints of future units. They override the environment's.
	Constraints constraints.Value `json:"constraints,omitzero"`

	// Storage is the storage that each future unit gets, by the charm's names.
	Storage map[string]charm.Directive `json:"storage,omitempty"`
}

// Origin is the place where the charm comes from, and where bijou looks for newer revisions.
type Origin struct {
	Repository string `json:"repository,omitempty"` // a directory of charms; empty if Path is the charm itself
	Path       string `json:"path,omitempty"`
	Series     string `json:"series,omitempty"`
	Name       string `json:"name,omitempty"`

	Store    string `json:"store,omitempty"`    // StoreCharmhub; empty for a charm from a directory or archive
	ID       string `json:"id,omitempty"`       // the charm's id in the store
	Revision int    `json:"revision,omitempty"` // the store's revision that the service must run
	Channel  string `json:"channel,omitempty"`  // the channel that the service follows: 14/stable
	Base     string `json:"base,omitempty"`     // the base that the release is for: ubuntu@22.04
}

// StoreCharmhub is the name of the store of charms in Origin and StoreCharm.
const StoreCharmhub = "charmhub"

// String returns the origin as status shows it.
func (o Origin) String() string { return cmp.Or(o.Store, o.Repository, o.Path) }

// PromisedVersion returns the version of Juju that the service's hooks see.
func (s Service) PromisedVersion() string { return cmp.Or(s.JujuVersion, charm.JujuVersion) }

// DialectOf returns the dialect of the charm's hooks in this service. The charm can differ from the
// service's, since units run different charms during an upgrade.
func (s Service) DialectOf(c Charm) charm.Dialect { return cmp.Or(s.HookDialect, c.Dialect) }

// setDialect sets the dialect of the service's hooks, and the reason that status shows for it.
func (s *Service) setDialect(c Charm) {
	s.Dialect = c.Dialect
	s.DialectMark = c.DialectMark
	if s.HookDialect != "" {
		s.Dialect = s.HookDialect
		s.DialectMark = "--hook-dialect sets it"
	}
}

// MissingError is returned for a charm that needs features which bijou does not have. Operators can force the
// charm.
type MissingError struct{ reason string }

func (e *MissingError) Error() string { return e.reason }

// CheckMissing returns a *MissingError if the charm needs a feature that bijou lacks, unless an operator
// has forced it.
func (s Service) CheckMissing(c Charm) error {
	// The charm works without its optional features.
	required, _ := charm.Unsupported(&c.Meta, s.PromisedVersion())
	if s.Force || len(required) == 0 {
		return nil
	}
	return &MissingError{fmt.Sprintf("charm %q needs %s, which this version of bijou does not support",
		c.URL, strings.Join(required, ", "))}
}

// AddService adds a service without units, with its configuration and its peer relations. The configuration
// has the same form as in SetConfig. If s has no series, it gets the series of the charm's URL. Fields that
// the charm decides, such as Subordinate, come from the charm. It returns ErrExists if the name is taken, and
// ErrNotFound if there is no such charm.
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

	// Run all of these checks, so that the error names all of their obstacles at once.
	takenErr := tx.checkNameFree(s.Name)
	seriesErr := tx.checkSeries(s, ch)
	featuresErr := s.CheckMissing(ch)
	constraintsErr := s.checkConstraints()
	if err := errors.Join(takenErr, seriesErr, featuresErr, constraintsErr); err != nil {
		return Service{}, err
	}

	if s.Storage, err = ChooseStorage(ch.Meta, s.Storage); err != nil {
		return Service{}, err
	}
	if err := tx.keys.Put(keys.Service(s.Name), s); err != nil {
		return Service{}, err
	}
	// setConfig reads the new service. Options of a new service can name secrets that are not granted to it yet.
	const isNew = true
	if _, err := tx.setConfig(s.Name, config, isNew); err != nil {
		return Service{}, err
	}

	return s, tx.addPeerRelations(s.Name, ch)
}

// checkNameFree returns ErrExists if a service has the name, even a service that is being destroyed.
func (tx *Tx) checkNameFree(name string) error {
	old, ok, err := keyspace.Load[Service](tx.keys, keys.Service(name))
	switch {
	case err != nil:
		return err
	case ok && old.Life != Alive:
		return refuse(ErrExists, "the application is still being destroyed: wait until it is gone, or give a different name")
	case ok:
		return refuse(ErrExists, "the application already exists")
	}

	return nil
}

// Service reads a service. It returns ErrNotFound if there is no such service.
func (v *View) Service(name string) (Service, error) {
	s, err := keyspace.LoadExisting[Service](v.keys, keys.Service(name), "application %q not found", name)
	s.Name = name
	return s, err
}

// Services reads all services, sorted by name.
func (v *View) Services() ([]Service, error) {
	return keyspace.LoadChildren(v.keys, keys.Services, func(s *Service, name string) { s.Name = name })
}

// AliveService reads a service that is alive. It returns ErrNotFound if there is no such service, and ErrDead
// if the service is being destroyed.
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

// CharmOf reads the charm with the given URL, or the service's charm if url is empty.
func (v *View) CharmOf(service, url string) (Charm, error) {
	s, err := v.Service(service)
	if err != nil {
		return Charm{}, err
	}
	return v.Charm(cmp.Or(url, s.Charm))
}

// SetExposed records whether a service must be reachable from outside.
func (tx *Tx) SetExposed(name string, exposed bool) error {
	s, err := tx.AliveService(name)
	if err != nil {
		return err
	}
	if s.Exposed == exposed {
		return nil
	}
	s.Exposed = exposed
	return tx.keys.Put(keys.Service(name), s)
}

// SetTrusted records whether a service's units get the cloud's credential. A change makes them run
// config-changed.
func (tx *Tx) SetTrusted(name string, trusted bool) error {
	s, err := tx.AliveService(name)
	if err != nil {
		return err
	}
	if s.Trusted == trusted {
		return nil
	}
	config, err := tx.Config(name)
	if err != nil {
		return err
	}

	s.Trusted = trusted
	if err := tx.keys.Put(keys.Service(name), s); err != nil {
		return err
	}

	// A new version of the configuration makes the units run config-changed.
	return tx.keys.Put(keys.Config(name), config.nextDoc())
}

// ServiceStatus reads the workload status that a unit has set for its whole service. It is the zero
// WorkloadStatus if no unit has set one.
func (v *View) ServiceStatus(name string) (WorkloadStatus, error) {
	return keyspace.LoadOrZero[WorkloadStatus](v.keys, keys.ServiceStatus(name))
}

// SetServiceStatus sets a service's workload status, and truncates its message to maxMessageBytes. It returns
// ErrNotFound if the service is gone.
func (tx *Tx) SetServiceStatus(name string, w WorkloadStatus) error {
	if _, err := tx.Service(name); err != nil {
		return err
	}
	w.Message = Truncate(w.Message, maxMessageBytes)
	return tx.keys.Put(keys.ServiceStatus(name), w)
}

// Bindings lists the names that a service can bind to a network, sorted: those of the charm's relations and
// extra bindings. An empty charmURL means the service's charm.
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
