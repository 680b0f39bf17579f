package juju

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
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

func newJujuStatus(s status.Status) jujuStatus {
	view := jujuStatus{
		Model:    jujuModel{s.Environment.Name, "iaas", controllerName, s.Environment.Provider, charm.JujuVersion, jujuStatusInfo{Current: "available"}},
		Machines: map[string]jujuMachine{}, Applications: map[string]jujuApplication{}, Status: s,
	}
	for id, m := range s.Machines {
		view.Machines[id] = newJujuMachine(m)
	}
	units := allUnits(s)
	for name, service := range s.Services {
		view.Applications[name] = newJujuApplication(service, units)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Relations)) {
		r := s.Relations[id]
		for service, end := range r.Services {
			other := jujuRelation{service, r.Interface, string(r.Scope)} // of a relation among peers
			for name := range r.Services {
				if name != service {
					other.Application = name
				}
			}
			if a, shown := view.Applications[service]; shown {
				a.Relations[end.Name] = append(a.Relations[end.Name], other)
			}
		}
	}
	return view
}

func newJujuMachine(m status.Machine) jujuMachine {
	agent := jujuStatusInfo{Current: string(m.State), Version: m.Agent, Life: m.Life}
	view := jujuMachine{Machine: m, Agent: agent, Instance: jujuStatusInfo{Current: "running"}}
	switch m.State {
	case state.MachineRunning:
		view.Agent.Current = "started"
	case state.MachineError:
		view.Instance = jujuStatusInfo{Current: "provisioning error", Message: m.Error}
	case state.MachinePending:
		view.Instance = jujuStatusInfo{Current: "pending", Message: m.Message}
	}
	return view
}

func newJujuApplication(s status.Service, all map[string]status.Unit) jujuApplication {
	url, _ := charm.ParseURL(s.Charm)
	view := jujuApplication{
		Service: s, Charm: shortURL(s.Charm), Origin: "local", CharmName: url.Name, CharmRevision: url.Revision,
		Relations: map[string][]jujuRelation{}, Units: map[string]jujuUnit{},
	}
	for name, u := range s.Units {
		view.Units[name] = newJujuUnit(u, all)
	}
	if view.Status = findWorst(view.Units); s.Status != nil {
		view.Status = charmStatus(s.Status)
	}
	if len(s.Principal) > 0 {
		view.Units = nil
	}
	return view
}

// shortURL returns a charm's URL as Juju writes it since it has no series: local:mysql-3.
func shortURL(text string) string {
	url, err := charm.ParseURL(text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("local:%s-%d", url.Name, url.Revision)
}

// findWorst returns the units' status that needs an operator's eye most.
func findWorst(units map[string]jujuUnit) jujuStatusInfo {
	names := slices.SortedFunc(maps.Keys(units), charm.CompareUnits)
	for _, word := range []string{"error", "blocked", "maintenance", "waiting", "active"} {
		for _, name := range names {
			if w := units[name].Workload; w.Current == word {
				return w
			}
		}
	}
	return jujuStatusInfo{Current: "unknown"}
}

func newJujuUnit(u status.Unit, all map[string]status.Unit) jujuUnit {
	view := jujuUnit{Unit: u, Workload: workloadInfo(u), Agent: agentInfo(u), Subordinates: map[string]jujuUnit{}}
	for _, name := range u.Subordinates {
		if sub, ok := all[name]; ok {
			view.Subordinates[name] = newJujuUnit(sub, all)
		}
	}
	return view
}

func charmStatus(w *status.Workload) jujuStatusInfo {
	return jujuStatusInfo{Current: cmp.Or(w.Current, "unknown"), Message: w.Message, Since: w.Since}
}

func workloadInfo(u status.Unit) jujuStatusInfo {
	why, failed := waitReason(u)
	switch {
	case u.State == state.UnitDown:
		return jujuStatusInfo{Current: "unknown", Message: "agent lost, see: juju status", Since: u.Info.Since}
	case failed:
		return jujuStatusInfo{Current: "error", Message: "hook failed: " + strings.Trim(why, "()")}
	case u.Workload != nil:
		return charmStatus(u.Workload)
	case u.State == state.UnitPending && u.Running == nil:
		return jujuStatusInfo{Current: "waiting", Message: "waiting for its machine and agent"}
	case u.State == state.UnitPending || u.State == "installed":
		return jujuStatusInfo{Current: "maintenance", Message: "installing charm software"}
	}
	return jujuStatusInfo{Current: "unknown"}
}

func agentInfo(u status.Unit) jujuStatusInfo {
	info := jujuStatusInfo{Current: "idle", Version: charm.JujuVersion, Life: u.Life}
	switch {
	case u.State == state.UnitDown:
		info.Current, info.Message, info.Since = "lost", u.Info.Message, u.Info.Since
	case u.Trouble != nil:
		info.Current, info.Message, info.Since = "failed", u.Trouble.Message, u.Trouble.Since
	case u.Running != nil:
		info.Current, info.Message, info.Since = "executing", "running "+u.Running.Name, u.Running.Since
	case u.State == state.UnitPending:
		info.Current = "allocating"
	}
	return info
}
