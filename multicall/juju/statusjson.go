package juju

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// jujuStatus is the status with the keys of Juju 3.6, for programs that were written for Juju, and with
// bijou's own keys (docs/reference/status.md). If both have a key, Juju's takes precedence.
type jujuStatus struct {
	Model        jujuModel                  `json:"model"`
	Machines     map[string]jujuMachine     `json:"machines"`
	Applications map[string]jujuApplication `json:"applications"`
	Storage      map[string]any             `json:"storage,omitempty"`
	Controller   map[string]string          `json:"controller,omitempty"`
	status.Status
}

type jujuModel struct {
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	Controller string      `json:"controller"`
	Cloud      string      `json:"cloud"`
	Version    string      `json:"version"`
	Status     status.Info `json:"model-status"`
}

type jujuMachine struct {
	status.Machine `yaml:",inline"`
	Agent          status.Info `json:"juju-status" yaml:"juju-status"`
	Instance       status.Info `json:"machine-status" yaml:"machine-status"`
	IPAddresses    []string    `json:"ip-addresses,omitempty" yaml:"ip-addresses,omitempty"`
	Base           charm.Base  `json:"base" yaml:"base"`
}

type jujuApplication struct {
	status.Service
	Charm         string                    `json:"charm"`
	Origin        string                    `json:"charm-origin"`
	CharmName     string                    `json:"charm-name"`
	CharmRevision int                       `json:"charm-rev"`
	CharmChannel  string                    `json:"charm-channel,omitempty"`
	Status        status.Info               `json:"application-status"`
	Relations     map[string][]jujuRelation `json:"relations,omitempty"`
	Units         map[string]jujuUnit       `json:"units,omitempty"` // nil for a subordinate, whose units are below their principals
	Base          charm.Base                `json:"base"`
}

type jujuRelation struct {
	Application string `json:"related-application"`
	Interface   string `json:"interface"`
	Scope       string `json:"scope"`
}

type jujuUnit struct {
	status.Unit
	Workload     status.Info         `json:"workload-status"`
	Agent        status.Info         `json:"juju-status"`
	Address      string              `json:"address,omitempty"` // Juju has this only for units on Kubernetes, but programs read it
	Subordinates map[string]jujuUnit `json:"subordinates,omitempty"`
}

// MarshalYAML returns the model as YAML with JSON's keys.
func (m jujuModel) MarshalYAML() (any, error) { return jsonNode(m) }

// MarshalYAML returns the application as YAML with JSON's keys.
func (a jujuApplication) MarshalYAML() (any, error) { return jsonNode(a) }

// MarshalYAML returns the unit as YAML with JSON's keys.
func (u jujuUnit) MarshalYAML() (any, error) { return jsonNode(u) }

// jsonNode returns the value as YAML with the structure that it has as JSON. The yaml package refuses
// embedded fields with the same key, where JSON uses the outer field.
func jsonNode(value any) (*yaml.Node, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	return readJSONNode(decoder)
}

// readJSONNode reads one JSON value as a YAML node. It keeps the order of keys, and numbers as they are written.
// d must return numbers as [json.Number].
func readJSONNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}

	var n yaml.Node
	switch token {
	case json.Delim('{'):
		n.Kind = yaml.MappingNode
	case json.Delim('['):
		n.Kind = yaml.SequenceNode
	default:
		if number, ok := token.(json.Number); ok {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: number.String()}, nil
		}
		return &n, n.Encode(token)
	}

	for d.More() {
		// In an object, keys and values alternate, as in the content of a YAML mapping.
		member, err := readJSONNode(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, member)
	}

	// This reads the closing delimiter.
	_, err = d.Token()
	return &n, err
}

// newJujuStatus returns the status under Juju 3's keys and bijou's own.
func newJujuStatus(s status.Status) jujuStatus {
	view := jujuStatus{
		// For programs written for Juju, every model consists of machines, and is available.
		Model: jujuModel{
			Name:       s.Environment.Name,
			Type:       "iaas",
			Controller: home.Controller,
			Cloud:      s.Environment.Provider,
			Version:    charm.JujuVersion,
			Status:     status.Info{Current: "available"},
		},
		Machines:     map[string]jujuMachine{},
		Applications: map[string]jujuApplication{},
		Status:       s,
		Controller:   map[string]string{"timestamp": time.Now().Format("15:04:05Z07:00")},
	}

	if len(s.Storage) > 0 {
		view.Storage = newStorageInfos(s.Storage)
	}
	for id, m := range s.Machines {
		view.Machines[id] = newJujuMachine(m)
	}
	units := allUnits(s)
	for name, service := range s.Services {
		view.Applications[name] = newJujuApplication(service, units)
	}

	for _, id := range slices.Sorted(maps.Keys(s.Relations)) {
		view.addRelation(s.Relations[id])
	}
	return view
}

// addRelation adds the relation to the applications at its ends, if the status shows them.
func (s jujuStatus) addRelation(r status.Relation) {
	for service, end := range r.Services {
		// In a relation among peers, the related application is the application itself.
		related := jujuRelation{Application: service, Interface: r.Interface, Scope: string(r.Scope)}
		for name := range r.Services {
			if name != service {
				related.Application = name
			}
		}

		if a, isShown := s.Applications[service]; isShown {
			a.Relations[end.Name] = append(a.Relations[end.Name], related)
		}
	}
}

// newJujuMachine returns a machine under Juju 3's keys.
func newJujuMachine(m status.Machine) jujuMachine {
	agent := status.Info{Current: string(m.State), Version: m.Agent, Life: m.Life}
	view := jujuMachine{
		Machine:  m,
		Agent:    agent,
		Instance: status.Info{Current: "running"},
		Base:     charm.BaseOfSeries(m.Series),
	}

	if m.DNSName != "" {
		view.IPAddresses = []string{m.DNSName}
	}

	switch m.State {
	case state.MachineRunning:
		view.Agent.Current = "started"
	case state.MachineError:
		view.Instance = status.Info{Current: "provisioning error", Message: m.Error}
	case state.MachinePending:
		view.Instance = status.Info{Current: "pending", Message: m.Message}
	}

	return view
}

// newJujuApplication returns a service under Juju 3's keys. It finds the subordinates of the service's units
// in units, the map of all units. For a subordinate service it returns no units, since the status has them
// below their principals.
func newJujuApplication(s status.Service, units map[string]status.Unit) jujuApplication {
	// A damaged URL is shown without its parts.
	url, _ := charm.ParseURL(s.Charm)
	view := jujuApplication{
		Service:       s,
		Charm:         charm.ShortURL(s.Charm),
		Origin:        "local",
		CharmName:     url.Name,
		CharmRevision: url.Revision,
		Status:        s.StatusInfo(),
		Relations:     map[string][]jujuRelation{},
		Units:         map[string]jujuUnit{},
		Base:          charm.BaseOfSeries(s.Series),
	}

	if origin := s.Source; origin.Store != "" {
		view.Charm = origin.Name
		view.Origin = origin.Store
		view.CharmName = origin.Name
		view.CharmRevision = origin.Revision
		view.CharmChannel = origin.Channel
	}

	for name, u := range s.Units {
		view.Units[name] = newJujuUnit(u, units)
	}
	if len(s.Principal) > 0 {
		view.Units = nil
	}
	return view
}

// newJujuUnit returns a unit under Juju 3's keys, with its subordinates. It finds the subordinates in units,
// the map of all units.
func newJujuUnit(u status.Unit, units map[string]status.Unit) jujuUnit {
	view := jujuUnit{
		Unit:         u,
		Workload:     u.WorkloadInfo(),
		Agent:        u.AgentInfo(),
		Address:      u.PublicAddress,
		Subordinates: map[string]jujuUnit{},
	}

	for _, name := range u.Subordinates {
		if subordinate, ok := units[name]; ok {
			view.Subordinates[name] = newJujuUnit(subordinate, units)
		}
	}

	return view
}
