package status

import (
	"encoding/json"
	"maps"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/text"
)

// Status is the data of `juju status`, as docs/reference/status.md describes it. Its tags are the keys in
// YAML and JSON.
type Status struct {
	Machines  map[string]Machine  `yaml:"machines" json:"machines"`   // by id
	Services  map[string]Service  `yaml:"services" json:"services"`   // by name
	Relations map[string]Relation `yaml:"relations" json:"relations"` // by "relation-N"
	// Provisioner is the provisioner's trouble. It is nil if there is no trouble.
	Provisioner *state.ProvisionerTrouble `yaml:"provisioner,omitempty" json:"provisioner,omitempty"`
	// Damage describes records that are missing, although other records name them, and records that do not
	// decode.
	Damage []string `yaml:"damage,omitempty" json:"damage,omitempty"`
	// Unmatched has the given patterns that have matched no name.
	Unmatched []string `yaml:"-" json:"-"`
	// Environment and Storage are the environment's record and storage. Read does not set them; callers that
	// show them must set them.
	Environment state.Environment `yaml:"-" json:"-"`
	Storage     []state.Storage   `yaml:"-" json:"-"`
}

// Machine is a machine in Status.
type Machine struct {
	InstanceID string              `yaml:"instance-id,omitempty" json:"instance-id,omitempty"`
	State      state.MachineStatus `yaml:"state" json:"state"` // down if it was running and its agent is gone
	Life       state.Life          `yaml:"life,omitempty" json:"life,omitempty"`
	DNSName    string              `yaml:"dns-name,omitempty" json:"dns-name,omitempty"`
	Series     string              `yaml:"series" json:"series"`
	Agent      string              `yaml:"agent-version,omitempty" json:"agent-version,omitempty"`

	Constraints string `yaml:"constraints,omitempty" json:"constraints,omitempty"` // as operators write them
	Placement   string `yaml:"placement,omitempty" json:"placement,omitempty"`     // in the provider's syntax

	Message   string    `yaml:"message,omitempty" json:"message,omitempty"` // the progress of the machine's start
	Error     string    `yaml:"error,omitempty" json:"error,omitempty"`
	Attempts  int       `yaml:"attempts,omitempty" json:"attempts,omitempty"`    // the failed starts so far
	NextRetry time.Time `yaml:"next-retry,omitempty" json:"next-retry,omitzero"` // zero if the start is not retried automatically

	Trouble *state.Trouble `yaml:"agent-trouble,omitempty" json:"agent-trouble,omitempty"` // the task at which its agent has failed repeatedly

	// Confined reports whether its agent reaches the state through a gateway. It is nil if the environment is
	// not confined, or if this is unknown.
	Confined *bool `yaml:"confined,omitempty" json:"confined,omitempty"`
}

// AwaitsConfinement reports whether a machine of a confined environment does not use a gateway yet. It is
// false for machine 0, which never uses one.
func (m Machine) AwaitsConfinement() bool {
	return m.Confined != nil && !*m.Confined && m.InstanceID != "localhost"
}

// Service is a service in Status. Life is empty if it is alive.
type Service struct {
	Charm     string              `yaml:"charm" json:"charm"`
	Origin    string              `yaml:"charm-origin,omitempty" json:"charm-origin,omitempty"`
	Source    state.Origin        `yaml:"-" json:"-"`                                               // the record of Origin
	Newer     string              `yaml:"can-upgrade-to,omitempty" json:"can-upgrade-to,omitempty"` // the store's newer charm, if the store was queried
	Version   string              `yaml:"version,omitempty" json:"version,omitempty"`               // the workload's version, as set by the units
	Series    string              `yaml:"series" json:"series"`
	Forced    bool                `yaml:"force-series,omitempty" json:"force-series,omitempty"` // accepts charms that do not support the series
	Force     bool                `yaml:"force,omitempty" json:"force,omitempty"`               // accepts charms that need features which bijou does not have
	Trusted   bool                `yaml:"trusted,omitempty" json:"trusted,omitempty"`           // has the cloud's credential
	Dialect   charm.Dialect       `yaml:"hook-dialect,omitempty" json:"hook-dialect,omitempty"`
	Mark      string              `yaml:"hook-dialect-mark,omitempty" json:"hook-dialect-mark,omitempty"` // why it has the dialect
	Promised  string              `yaml:"juju-version,omitempty" json:"juju-version,omitempty"`           // the version of Juju that the operator set for its hooks
	Exposed   bool                `yaml:"exposed" json:"exposed"`
	Life      state.Life          `yaml:"life,omitempty" json:"life,omitempty"`
	Principal []string            `yaml:"subordinate-to,omitempty" json:"subordinate-to,omitempty"` // the principal services of a subordinate
	Status    *Workload           `yaml:"service-status,omitempty" json:"service-status,omitempty"` // set by status-set --application
	Relations map[string][]string `yaml:"relations,omitempty" json:"relations,omitempty"`           // the related services, by relation name
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
	Trouble       *state.Trouble          `yaml:"agent-trouble,omitempty" json:"agent-trouble,omitempty"` // the task at which its agent has failed repeatedly
	Life          state.Life              `yaml:"life,omitempty" json:"life,omitempty"`
	Leader        bool                    `yaml:"leader,omitempty" json:"leader,omitempty"`   // leads its service
	Version       string                  `yaml:"version,omitempty" json:"version,omitempty"` // the workload's version, as set by its charm
	Workload      *Workload               `yaml:"workload-status,omitempty" json:"workload-status,omitempty"`
	Charm         string                  `yaml:"upgrading-from,omitempty" json:"upgrading-from,omitempty"` // its charm, if that is not the service's
	Machine       string                  `yaml:"machine" json:"machine"`
	PublicAddress string                  `yaml:"public-address,omitempty" json:"public-address,omitempty"`
	OpenPorts     []string                `yaml:"open-ports,omitempty" json:"open-ports,omitempty"`
	Relations     map[string]UnitRelation `yaml:"relations,omitempty" json:"relations,omitempty"` // by relation name
	Principal     string                  `yaml:"subordinate-to,omitempty" json:"subordinate-to,omitempty"`
	Subordinates  []string                `yaml:"subordinates,omitempty" json:"subordinates,omitempty"`
}

// UnitStateInfo explains a unit's state. It describes a failed hook, a hook that has been running for a very long
// time, or the last state of a unit that is down.
type UnitStateInfo struct {
	Last      string         `yaml:"last-state,omitempty" json:"last-state,omitempty"`
	Hook      string         `yaml:"hook,omitempty" json:"hook,omitempty"`
	Message   string         `yaml:"message,omitempty" json:"message,omitempty"`
	Stderr    string         `yaml:"stderr,omitempty" json:"stderr,omitempty"` // the last line that the hook wrote to stderr
	Logged    string         `yaml:"logged,omitempty" json:"logged,omitempty"` // the last line that the hook logged as an error, if Stderr is empty
	See       string         `yaml:"see,omitempty" json:"see,omitempty"`       // the command that shows more
	Since     time.Time      `yaml:"since,omitempty" json:"since,omitzero"`
	Attempts  int            `yaml:"attempts,omitempty" json:"attempts,omitempty"`
	NextRetry time.Time      `yaml:"next-retry,omitempty" json:"next-retry,omitzero"`
	Resolved  state.Resolved `yaml:"resolved,omitempty" json:"resolved,omitempty"` // an answer on which its agent has not acted yet

	Interrupted bool `yaml:"interrupted,omitempty" json:"interrupted,omitempty"` // an operator interrupted the hook, so it is not retried
}

// UnitRelation has a unit's relations with one endpoint name, by "relation-N", and the worst of their states.
// In YAML and JSON the state and the relations are keys of one mapping.
type UnitRelation struct {
	State     string
	Relations map[string]RelationUnit
}

// RelationUnit is a unit in a relation. All fields except State describe an error.
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

// MarshalYAML returns one mapping with the worst state and the single relations.
func (u UnitRelation) MarshalYAML() (any, error) { return u.asMap(), nil }

// MarshalJSON returns the same mapping as MarshalYAML, as JSON.
func (u UnitRelation) MarshalJSON() ([]byte, error) { return json.Marshal(u.asMap()) }

// asMap returns the relations by name, with the worst state under the key "state".
func (u UnitRelation) asMap() map[string]any {
	m := map[string]any{"state": u.State}
	for name, r := range u.Relations {
		m[name] = r
	}
	return m
}

// Relation is a relation in Status. A peer relation has only one service.
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

// Ends returns the services at the two ends of a relation. For a peer relation it returns its only service twice.
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

// State returns the worst state of the relation's ends.
func (r Relation) State() string {
	ends := map[string]RelationUnit{}
	for service, end := range r.Services {
		ends[service] = RelationUnit{State: end.State}
	}
	return WorstRelation(ends)
}

// WorstRelation returns the units' state that most needs an operator's attention. The order is error, start, departed
// (RelationEnded), up. It returns start if there are no units.
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

// hideAllSecrets replaces secrets in the recorded messages and failures of units, services, agents, machines and the
// provisioner.
func (w *input) hideAllSecrets() {
	for i := range w.units {
		hideSecrets(&w.units[i].Status.Message)
	}
	for service, s := range w.statuses {
		hideSecrets(&s.Message)
		w.statuses[service] = s
	}

	for _, workflow := range w.workflows {
		hideInFailure(workflow.Failure)
	}
	for _, r := range w.relationStates {
		hideInFailure(r.Failure)
	}

	// w.present has the trouble of each present agent.
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

// hideInFailure replaces the secrets in the texts of a failure, which can be nil.
func hideInFailure(f *state.Failure) {
	if f != nil {
		hideSecrets(&f.Message)
		hideSecrets(&f.Stderr)
		hideSecrets(&f.Logged)
	}
}

// hideSecrets replaces the secrets in one message.
func hideSecrets(message *string) {
	*message = text.HideSecrets(*message)
}
