package status

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/sanitize"
)

// RelationDetail is one relation of one unit, with what either side has said.
type RelationDetail struct {
	ID              int                     `json:"relation-id" yaml:"relation-id"`
	Endpoint        string                  `json:"endpoint" yaml:"endpoint"`
	RelatedEndpoint string                  `json:"related-endpoint" yaml:"related-endpoint"`
	AppData         map[string]string       `json:"application-data" yaml:"application-data"` // the related service's
	LocalUnit       RelationData            `json:"local-unit" yaml:"local-unit"`
	RelatedUnits    map[string]RelationData `json:"related-units" yaml:"related-units"`

	Service      string            `json:"related-application" yaml:"related-application"`
	LocalAppData map[string]string `json:"local-application-data,omitempty" yaml:"local-application-data,omitempty"`
	RelationUnit `yaml:",inline"`
}

// RelationData has what a unit has said in a relation.
type RelationData struct {
	InScope bool              `json:"in-scope" yaml:"in-scope"`
	Data    map[string]string `json:"data" yaml:"data"`
}

func (d *UnitDetail) readRelations(v *state.View, u state.Unit, view Unit) error {
	relations, err := v.ServiceRelations(u.Service)
	if err != nil {
		return err
	}
	for _, r := range relations {
		own, _ := r.Endpoint(u.Service)
		of, concerned := view.Relations[own.Name].Relations[r.String()]
		if !concerned {
			continue
		}
		related, err := readRelationDetail(v, r, u)
		if err != nil {
			return err
		}
		related.RelationUnit = of
		d.Relations = append(d.Relations, related)
	}
	return nil
}

func readRelationDetail(v *state.View, r state.Relation, u state.Unit) (d RelationDetail, err error) {
	own, _ := r.Endpoint(u.Service)
	other := r.Other(u.Service)
	app, err := v.AppSettings(r.ID, other.Service)
	local, lerr := v.AppSettings(r.ID, u.Service)
	if err := errors.Join(err, lerr); err != nil {
		return d, err
	}
	d = RelationDetail{
		ID: r.ID, Endpoint: own.Name, RelatedEndpoint: other.Name, AppData: app.Values, LocalUnit: RelationData{Data: map[string]string{}},
		RelatedUnits: map[string]RelationData{}, Service: other.Service, LocalAppData: local.Values,
	}
	self, in, err := v.Member(r.ID, u.Name)
	if err != nil || !in {
		return d, err
	}
	others, err := v.MembersOf(r.ID, other.Service)
	for _, m := range append(others, self) {
		s, err := v.Settings(r.ID, m.Unit)
		switch {
		case err != nil:
			return d, err
		case m.Unit == u.Name:
			d.LocalUnit = RelationData{true, s.Values}
		case r.Scope == charm.Global || m.Principal == self.Principal:
			d.RelatedUnits[m.Unit] = RelationData{true, s.Values}
		}
	}
	return d, err
}

// HideSettings hides what names of settings and options say is secret, as the log does.
func (d *UnitDetail) HideSettings() {
	for name, value := range d.Options {
		if text := fmt.Sprint(value); hideSetting(name, text) != text {
			d.Options[name] = hideSetting(name, text)
		}
	}
	for _, r := range d.Relations {
		for _, said := range append(slices.Collect(maps.Values(r.RelatedUnits)), r.LocalUnit, RelationData{Data: r.AppData}, RelationData{Data: r.LocalAppData}) {
			for name, value := range said.Data {
				said.Data[name] = hideSetting(name, value)
			}
		}
	}
}

func hideSetting(name, value string) string {
	if sanitize.IsSecret(name) {
		return sanitize.Hidden
	}
	return sanitize.HideSecrets(value)
}
