package juju

import (
	"cmp"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

type showUnitCmd struct {
	Unit   string `arg:"" help:"The unit; SERVICE/leader is the one that leads."`
	Format string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// unitInfo is a unit as Juju 3 shows it.
type unitInfo struct {
	Version       string         `json:"workload-version,omitempty" yaml:"workload-version,omitempty"`
	Machine       string         `json:"machine,omitempty" yaml:"machine,omitempty"`
	OpenedPorts   []string       `json:"opened-ports" yaml:"opened-ports"`
	PublicAddress string         `json:"public-address,omitempty" yaml:"public-address,omitempty"`
	Charm         string         `json:"charm" yaml:"charm"`
	Leader        bool           `json:"leader" yaml:"leader"`
	Life          state.Life     `json:"life" yaml:"life"`
	Relations     []relationInfo `json:"relation-info,omitempty" yaml:"relation-info,omitempty"`
}

type relationInfo struct {
	ID              int                     `json:"relation-id" yaml:"relation-id"`
	Endpoint        string                  `json:"endpoint" yaml:"endpoint"`
	RelatedEndpoint string                  `json:"related-endpoint" yaml:"related-endpoint"`
	AppData         map[string]string       `json:"application-data" yaml:"application-data"` // the related service's
	LocalUnit       relationData            `json:"local-unit" yaml:"local-unit"`
	RelatedUnits    map[string]relationData `json:"related-units" yaml:"related-units"`
}

type relationData struct {
	InScope bool              `json:"in-scope" yaml:"in-scope"`
	Data    map[string]string `json:"data" yaml:"data"`
}

// Run prints the unit.
func (c showUnitCmd) Run(o *operator) error {
	all := map[string]unitInfo{}
	err := o.view(func(v *state.View) error {
		name, err := findUnitName(v, c.Unit)
		if err == nil {
			all[name], err = readUnitInfo(v, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.encode(c.Format, all)
}

func readUnitInfo(v *state.View, name string) (info unitInfo, err error) {
	u, err := v.Unit(name)
	if err != nil {
		return info, err
	}
	s, err := status.Read(v, status.Options{Now: time.Now(), Scope: scopeOf([]string{name})})
	if err != nil {
		return info, err
	}
	service := s.Services[u.Service]
	view := service.Units[name]
	info = unitInfo{
		Version: view.Version, Machine: u.Machine, OpenedPorts: append([]string{}, view.OpenPorts...), PublicAddress: view.PublicAddress,
		Charm: shortURL(cmp.Or(u.Charm, service.Charm)), Leader: view.Leader, Life: u.Life,
	}
	relations, err := v.ServiceRelations(u.Service)
	for _, r := range relations {
		own, _ := r.Endpoint(u.Service)
		if _, concerned := view.Relations[own.Name].Relations[r.String()]; !concerned {
			continue
		}
		related, err := readRelationInfo(v, r, u)
		if err != nil {
			return info, err
		}
		info.Relations = append(info.Relations, related)
	}
	return info, err
}

func readRelationInfo(v *state.View, r state.Relation, u state.Unit) (info relationInfo, err error) {
	own, _ := r.Endpoint(u.Service)
	other := r.Other(u.Service)
	app, err := v.AppSettings(r.ID, other.Service)
	if err != nil {
		return info, err
	}
	info = relationInfo{r.ID, own.Name, other.Name, app.Values, relationData{Data: map[string]string{}}, map[string]relationData{}}
	self, in, err := v.Member(r.ID, u.Name)
	if err != nil || !in {
		return info, err
	}
	others, err := v.MembersOf(r.ID, other.Service)
	for _, m := range append(others, self) {
		s, err := v.Settings(r.ID, m.Unit)
		switch {
		case err != nil:
			return info, err
		case m.Unit == u.Name:
			info.LocalUnit = relationData{true, s.Values}
		case r.Scope == charm.Global || m.Principal == self.Principal:
			info.RelatedUnits[m.Unit] = relationData{true, s.Values}
		}
	}
	return info, err
}
