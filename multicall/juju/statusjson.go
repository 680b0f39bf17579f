package juju

import (
	"time"

	"bijou/state"
	"bijou/state/status"
)

// There are no controllers and no users: an environment is whoever's its folder is. Programs
// that know Juju want names all the same.
const (
	controllerName = "bijou"
	modelOwner     = "admin"
)

// jujuStatus is the status with the keys of Juju 3.6, as programs that know Juju read it, and
// bijou's own beside them: docs/reference/status.md. Where both have a key, Juju's wins.
type jujuStatus struct {
	Model        jujuModel                  `json:"model"`
	Machines     map[string]jujuMachine     `json:"machines"`
	Applications map[string]jujuApplication `json:"applications"`
	status.Status
}

type jujuModel struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Controller string         `json:"controller"`
	Cloud      string         `json:"cloud"`
	Version    string         `json:"version"`
	Status     jujuStatusInfo `json:"model-status"`
}

type jujuStatusInfo struct {
	Current string     `json:"current,omitempty" yaml:"current"`
	Message string     `json:"message,omitempty" yaml:"message,omitempty"`
	Since   time.Time  `json:"since,omitzero" yaml:"since,omitempty"`
	Version string     `json:"version,omitempty" yaml:"version,omitempty"`
	Life    state.Life `json:"life,omitempty" yaml:"life,omitempty"`
}

type jujuMachine struct {
	status.Machine
	Agent    jujuStatusInfo `json:"juju-status"`
	Instance jujuStatusInfo `json:"machine-status"`
}

type jujuApplication struct {
	status.Service
	Charm         string                    `json:"charm"`
	Origin        string                    `json:"charm-origin"`
	CharmName     string                    `json:"charm-name"`
	CharmRevision int                       `json:"charm-rev"`
	Status        jujuStatusInfo            `json:"application-status"`
	Relations     map[string][]jujuRelation `json:"relations,omitempty"`
	Units         map[string]jujuUnit       `json:"units,omitempty"` // a subordinate's are with their principals
}

type jujuRelation struct {
	Application string `json:"related-application"`
	Interface   string `json:"interface"`
	Scope       string `json:"scope"`
}

type jujuUnit struct {
	status.Unit
	Workload     jujuStatusInfo      `json:"workload-status"`
	Agent        jujuStatusInfo      `json:"juju-status"`
	Subordinates map[string]jujuUnit `json:"subordinates,omitempty"`
}
