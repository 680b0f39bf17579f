package status

import (
	"encoding/json"
	"maps"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/text"
)

// Status is the model of `juju status`: docs/reference/status.md. Its tags are the keys
// of its YAML and JSON.
type Status struct {
	Machines  map[string]Machine  `yaml:"machines" json:"machines"`   // by id
	Services  map[string]Service  `yaml:"services" json:"services"`   // by name
	Relations map[string]Relation `yaml:"relations" json:"relations"` // by "relation-N"
	// Provisioner is the provisioner's trouble; nil: none.
	Provisioner *state.ProvisionerTrouble `yaml:"provisioner,omitempty" json:"provisioner,omitempty"`
	// Damage says which records others name and are missing.
	Damage []string `yaml:"damage,omitempty" json:"damage,omitempty"`
	// Unmatched are patterns that have matched nothing, as they were given.
	Unmatched []string `yaml:"-" json:"-"`
	// Environment is whose status it is, and Storage its storage, where the reader has added them.
	Environment state.Environment `yaml:"-" json:"-"`
	Storage     []state.Storage   `yaml:"-" json:"-"`
}

// Machine is a machine in Status.
type Machine struct {
	InstanceID string              `yaml:"instance-id,omitempty" json:"instance-id,omitempty"`
	State      state.MachineStatus `yaml:"state" json:"state"` // down: it was running, and its agent is gone
	Life       state.Life          `yaml:"life,omitempty" json:"life,omitempty"`
	DNSName    string              `yaml:"dns-name,omitempty" json:"dns-name,omitempty"`
	Series     string              `yaml:"series" json:"series"`
	Agent      string              `yaml:"agent-version,omitempty" json:"agent-version,omitempty"`

	Constraints string `yaml:"constraints,omitempty" json:"constraints,omitempty"` // as operators write them
	Placement   string `yaml:"placement,omitempty" json:"placement,omitempty"`     // in the provider's words

	Message   string    `yaml:"message,omitempty" json:"message,omitempty"` // how far its start is
	Error     string    `yaml:"error,omitempty" json:"error,omitempty"`
	Attempts  int       `yaml:"attempts,omitempty" json:"attempts,omitempty"`    // of a start that is tried again
	NextRetry time.Time `yaml:"next-retry,omitempty" json:"next-retry,omitzero"` // zero: not by itself

	Trouble *state.Trouble `yaml:"agent-trouble,omitempty" json:"agent-trouble,omitempty"` // what its agent cannot do

	// Confined is whether its agent has the state by a gateway; nil: its environment is not confined, or it is not known.
	Confined *bool `yaml:"confined,omitempty" json:"confined,omitempty"`
}

// AwaitsConfinement reports whether a machine of a confined environment still has the state itself. Machine 0, which serves
// it to the others, always does.
func (m Machine) AwaitsConfinement() bool {
	return m.Confined != nil && !*m.Confined && m.InstanceID != "localhost"
}

// Service is a service in Status. Life is left out while it is alive.
type Service struct {
	Charm     string              `yaml:"charm" json:"charm"`
	Origin    string              `yaml:"charm-origin,omitempty" json:"charm-origin,omitempty"`
	Source    state.Origin        `yaml:"-" json:"-"`                                               // whole
	Newer     string              `yaml:"can-upgrade-to,omitempty" json:"can-upgrade-to,omitempty"` // of the store, where it was asked
	Version   string              `yaml:"version,omitempty" json:"version,omitempty"`               // of the workload, as the units say
	Series    string              `yaml:"series" json:"series"`
	Forced    bool                `yaml:"force-series,omitempty" json:"force-series,omitempty"` // whatever its charm supports
	Force     bool                `yaml:"force,omitempty" json:"force,omitempty"`               // whatever its charm needs that bijou does not have
	Trusted   bool                `yaml:"trusted,omitempty" json:"trusted,omitempty"`           // with the cloud's credential
	Dialect   charm.Dialect       `yaml:"hook-dialect,omitempty" json:"hook-dialect,omitempty"`
	Mark      string              `yaml:"hook-dialect-mark,omitempty" json:"hook-dialect-mark,omitempty"` // what decided it
	Promised  string              `yaml:"juju-version,omitempty" json:"juju-version,omitempty"`           // to its hooks, by the operator
	Exposed   bool                `yaml:"exposed" json:"exposed"`
	Life      state.Life          `yaml:"life,omitempty" json:"life,omitempty"`
	Principal []string            `yaml:"subordinate-to,omitempty" json:"subordinate-to,omitempty"` // services that its units come with
	Status    *Workload           `yaml:"service-status,omitempty" json:"service-status,omitempty"` // by status-set --application
	Relations map[string][]string `yaml:"relations,omitempty" json:"relations,omitempty"`           // services by relation name
	Units     map[string]Unit     `yaml:"units,omitempty" json:"units,omitempty"`
}

// Workload is the workload status in Status, as the charm has set it.
type Workload struct {
	Current string    `yaml:"current" json:"current"`
	Message string    `yaml:"message,omitempty" json:"message,omitempty"`
	Since   time.Time `yaml:"since,omitempty" json:"since,omitzero"`
}

// Unit is a unit in Status.
type Unit struct {
	State         string                  `yaml:"state" json:"state"` // pending, installed, started, stopped, *-error, down
	Info          *UnitStateInfo          `yaml:"state-info,omitempty" json:"state-info,omitempty"`
	Running       *state.RunningHook      `yaml:"running,omitempty" json:"running,omitempty"`
	Trouble       *state.Trouble          `yaml:"agent-trouble,omitempty" json:"agent-trouble,omitempty"` // what its agent cannot do
	Life          state.Life              `yaml:"life,omitempty" json:"life,omitempty"`
	Leader        bool                    `yaml:"leader,omitempty" json:"leader,omitempty"`   // of its service
	Version       string                  `yaml:"version,omitempty" json:"version,omitempty"` // of its workload, as it says
	Workload      *Workload               `yaml:"workload-status,omitempty" json:"workload-status,omitempty"`
	Charm         string                  `yaml:"upgrading-from,omitempty" json:"upgrading-from,omitempty"` // where it is not yet the service's
	Machine       string                  `yaml:"machine" json:"machine"`
	PublicAddress string                  `yaml:"public-address,omitempty" json:"public-address,omitempty"`
	OpenPorts     []string                `yaml:"open-ports,omitempty" json:"open-ports,omitempty"`
	Relations     map[string]UnitRelation `yaml:"relations,omitempty" json:"relations,omitempty"` // by relation name
	Principal     string                  `yaml:"subordinate-to,omitempty" json:"subordinate-to,omitempty"`
	Subordinates  []string                `yaml:"subordinates,omitempty" json:"subordinates,omitempty"`
}

// UnitStateInfo explains a unit's state: the failed hook, one that runs for very long, or
// for a unit that is down the state that its agent left it in.
type UnitStateInfo struct {
	Last      string         `yaml:"last-state,omitempty" json:"last-state,omitempty"`
	Hook      string         `yaml:"hook,omitempty" json:"hook,omitempty"`
	Message   string         `yaml:"message,omitempty" json:"message,omitempty"`
	Stderr    string         `yaml:"stderr,omitempty" json:"stderr,omitempty"` // the last line that the hook has written there
	Logged    string         `yaml:"logged,omitempty" json:"logged,omitempty"` // the last line that it has logged as an error, if Stderr is empty
	See       string         `yaml:"see,omitempty" json:"see,omitempty"`       // the command that shows more
	Since     time.Time      `yaml:"since,omitempty" json:"since,omitzero"`
	Attempts  int            `yaml:"attempts,omitempty" json:"attempts,omitempty"`
	NextRetry time.Time      `yaml:"next-retry,omitempty" json:"next-retry,omitzero"`
	Resolved  state.Resolved `yaml:"resolved,omitempty" json:"resolved,omitempty"` // an answer that its agent has not taken up yet

	Interrupted bool `yaml:"interrupted,omitempty" json:"interrupted,omitempty"` // by an operator: not retried by itself
}

// UnitRelation is a unit's relations of one name: the worst of their states, and
// each by "relation-N", as keys of one mapping.
type UnitRelation struct {
	State     string
	Relations map[string]RelationUnit
}

// RelationUnit is one unit in one relation; all but State is of an error.
type RelationUnit struct {
	State     string         `yaml:"state" json:"state"` // start, up, departed, error
	Message   string         `yaml:"message,omitempty" json:"message,omitempty"`
	Stderr    string         `yaml:"stderr,omitempty" json:"stderr,omitempty"`
	Logged    string         `yaml:"logged,omitempty" json:"logged,omitempty"`
	See       string         `yaml:"see,omitempty" json:"see,omitempty"`
	Since     time.Time      `yaml:"since,omitempty" json:"since,omitzero"`
	Attempts  int            `yaml:"attempts,omitempty" json:"attempts,omitempty"`
	NextRetry time.Time      `yaml:"next-retry,omitempty" json:"next-retry,omitzero"`
	Resolved  state.Resolved `yaml:"resolved,omitempty" json:"resolved,omitempty"`
}

// MarshalYAML puts the states of the single relations beside the worst.
func (u UnitRelation) MarshalYAML() (any, error) { return u.asMap(), nil }

// MarshalJSON does what MarshalYAML does, for JSON.
func (u UnitRelation) MarshalJSON() ([]byte, error) { return json.Marshal(u.asMap()) }

func (u UnitRelation) asMap() map[string]any {
	m := map[string]any{"state": u.State}
	for name, r := range u.Relations {
		m[name] = r
	}
	return m
}

// Relation is a relation in Status; a peer relation has one service.
type Relation struct {
	Interface string                 `yaml:"interface" json:"interface"`
	Scope     charm.Scope            `yaml:"scope" json:"scope"`
	Life      state.Life             `yaml:"life,omitempty" json:"life,omitempty"`
	Services  map[string]RelationEnd `yaml:"services" json:"services"`
}

// RelationEnd is one service's end of a relation, with the worst state of its units.
type RelationEnd struct {
	Name  string                  `yaml:"relation-name" json:"relation-name"`
	Role  charm.Role              `yaml:"role" json:"role"`
	State string                  `yaml:"state" json:"state"`
	Units map[string]RelationUnit `yaml:"units" json:"units"`
}

// Ends returns the services of a relation; a peer relation's one service twice.
func (r Relation) Ends() (provider, consumer string) {
	for name, end := range r.Services {
		if end.Role != charm.Consumes {
			provider = name
		}
		if end.Role != charm.Provides {
			consumer = name
		}
	}

	return provider, consumer
}

// State returns the worst state of its ends.
func (r Relation) State() string {
	ends := map[string]RelationUnit{}
	for service, end := range r.Services {
		ends[service] = RelationUnit{State: end.State}
	}
	return WorstRelation(ends)
}

// WorstRelation returns the state that needs an operator's eye most: error, then start,
// departed, up; start where there is none.
func WorstRelation(units map[string]RelationUnit) string {
	states := map[string]bool{}
	for u := range maps.Values(units) {
		states[u.State] = true
	}

	for _, s := range []string{state.RelationError, state.RelationStart, state.RelationEnded, state.RelationUp} {
		if states[s] {
			return s
		}
	}

	return state.RelationStart
}

// hideSecrets replaces secrets in all messages that the status shows.
func (w *input) hideSecrets() {
	for i := range w.units {
		hideSecrets(&w.units[i].Status.Message)
	}
	for service, s := range w.statuses {
		hideSecrets(&s.Message)
		w.statuses[service] = s
	}

	for _, flow := range w.workflows {
		hideInFailure(flow.Failure)
	}
	for _, r := range w.relationStates {
		hideInFailure(r.Failure)
	}

	for _, trouble := range w.present {
		if trouble != nil {
			hideSecrets(&trouble.Message)
		}
	}

	for id, m := range w.machines {
		hideSecrets(&m.Message)
		w.machines[id] = m
	}

	if w.trouble != nil {
		for i := range w.trouble.Messages {
			hideSecrets(&w.trouble.Messages[i])
		}
	}
}

func hideInFailure(f *state.Failure) {
	if f != nil {
		hideSecrets(&f.Message)
		hideSecrets(&f.Stderr)
		hideSecrets(&f.Logged)
	}
}

func hideSecrets(message *string) {
	*message = text.HideSecrets(*message)
}
