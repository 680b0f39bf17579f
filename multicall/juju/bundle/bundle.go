// Package bundle has bundles: files that say which applications, machines and relations
// there are to be. It reads them with their overlays, compares them with an environment,
// says step by step what is to be done, and makes one of an environment.
//
// It changes nothing, and reads what it is handed: multicall/juju alone imports it.
package bundle

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/state/charm"

	"gopkg.in/yaml.v3"
)

// Bundle has what a bundle's file and its overlays say together.
type Bundle struct {
	Series       string                  `yaml:"series,omitempty"`
	Base         string                  `yaml:"default-base,omitempty"`
	Applications map[string]*Application `yaml:"applications"`
	Machines     map[string]Machine      `yaml:"machines,omitempty"`
	Relations    [][2]string             `yaml:"relations,omitempty"`

	Missing []string `yaml:"-"` // what it asks for and bijou does not have
	Ignored []string `yaml:"-"` // what it says that has no effect
}

// Application is one application. The files that it names are below the folder of the
// bundle, or the overlay, that names them.
type Application struct {
	Charm       string               `yaml:"charm"`
	Series      string               `yaml:"series,omitempty"`
	Base        string               `yaml:"base,omitempty"`
	NumUnits    int                  `yaml:"num_units,omitempty"`
	To          charm.Strings        `yaml:"to,omitempty"`
	Expose      *bool                `yaml:"expose,omitempty"`
	Trust       *bool                `yaml:"trust,omitempty"`
	Constraints *string              `yaml:"constraints,omitempty"`
	Options     map[string]yaml.Node `yaml:"options,omitempty"`
	Resources   map[string]string    `yaml:"resources,omitempty"`
	Storage     map[string]string    `yaml:"storage,omitempty"`

	Rest map[string]yaml.Node `yaml:",inline"`
}

// Machine is a machine that units are put on by its number.
type Machine struct {
	Series      string `yaml:"series,omitempty"`
	Base        string `yaml:"base,omitempty"`
	Constraints string `yaml:"constraints,omitempty"`

	Rest map[string]yaml.Node `yaml:",inline"`
}

// document is one of a file's YAML documents: the first is the bundle, the others are overlays.
type document struct {
	Series       string               `yaml:"series"`
	Base         string               `yaml:"default-base"`
	Applications map[string]yaml.Node `yaml:"applications"`
	Services     map[string]yaml.Node `yaml:"services"` // as applications were called
	Machines     map[string]Machine   `yaml:"machines"`
	Relations    []yaml.Node          `yaml:"relations"`

	Rest map[string]yaml.Node `yaml:",inline"`
}

// parser gathers a bundle from its files, and all that is wrong with it.
type parser struct {
	*Bundle
	read func(path string) ([]byte, error)
	path string // of the file that is read
	errs []error
}

// refuse keeps no more errors than somebody reads.
func (p *parser) refuse(format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, fmt.Errorf(format, args...))
	}
}

// Parse reads a bundle and lays the overlays over it, one after the other; the paths are
// absolute. An overlay's applications are laid over those of before key by key, and null
// takes away; its relations are added, its machines take the place of those of before.
func Parse(read func(path string) ([]byte, error), paths ...string) (*Bundle, error) {
	p := &parser{Bundle: &Bundle{Applications: map[string]*Application{}}, read: read}
	for _, p.path = range paths {
		var docs []*yaml.Node
		data, err := read(p.path)
		if err == nil {
			docs, err = charm.ParseYAML(data)
		}
		if err != nil {
			return p.Bundle, fmt.Errorf("%s: %w", p.path, err)
		}
		for _, doc := range docs {
			p.overlay(doc)
		}
	}
	if len(p.errs) == 0 {
		p.check()
	}
	return p.Bundle, errors.Join(p.errs...)
}

func (p *parser) overlay(doc *yaml.Node) {
	var d document
	if err := charm.DecodeYAML(doc, &d); err != nil {
		p.refuse("%s: %w", p.path, err)
		return
	}
	p.checkKeys("the bundle", d.Rest, d)
	if d.Series+d.Base != "" {
		p.Series, p.Base = d.Series, d.Base
	}
	for _, part := range []map[string]yaml.Node{d.Services, d.Applications} {
		for _, name := range slices.Sorted(maps.Keys(part)) {
			node := part[name]
			p.overlayApplication(name, &node)
		}
	}
	if d.Machines != nil {
		p.Machines = d.Machines
	}
	for _, id := range slices.Sorted(maps.Keys(d.Machines)) {
		p.checkKeys(fmt.Sprintf("machine %q", id), d.Machines[id].Rest, Machine{})
	}
	for i := range d.Relations {
		p.addRelation(&d.Relations[i])
	}
}

func (p *parser) overlayApplication(name string, n *yaml.Node) {
	if isNull(n) {
		delete(p.Applications, name)
		p.Relations = slices.DeleteFunc(p.Relations, func(r [2]string) bool { return isOf(name, r[0]) || isOf(name, r[1]) })
		return
	}
	a := p.Applications[name]
	if a == nil {
		a = &Application{}
		p.Applications[name] = a
	}
	if err := charm.DecodeYAML(n, a); err != nil { // what it does not say stays as it was
		p.refuse("%s: application %q: %w", p.path, name, err)
	}
	p.checkKeys(fmt.Sprintf("application %q", name), a.Rest, *a)
	a.Rest = nil
	if strings.HasPrefix(a.Charm, ".") {
		a.Charm = p.resolvePath(a.Charm)
	}
	for _, option := range slices.Sorted(maps.Keys(a.Options)) {
		value := a.Options[option]
		if isNull(&value) {
			delete(a.Options, option)
		} else if err := p.include(&value); err != nil {
			p.refuse("%s: application %q: option %q: %w", p.path, name, option, err)
		} else {
			a.Options[option] = value
		}
	}
	p.resolveResources(name, a.Resources)
}

func (p *parser) resolveResources(name string, files map[string]string) {
	for resource, path := range files {
		_, err := strconv.Atoi(path)
		if files[resource] = p.resolvePath(path); path == "" || err == nil {
			delete(files, resource)
		}
		if err == nil {
			p.Missing = append(p.Missing, fmt.Sprintf("application %q: resource %q: revision %s is a store's; give a file", name, resource, path))
		}
	}
}

// resolvePath returns a path that the file names.
func (p *parser) resolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.path), path)
}

// include puts the content of a file in the place of a value that names it. Content, which
// has no line of the bundle, names none.
func (p *parser) include(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		*n = *n.Alias
	}
	scheme, path, isInclude := strings.Cut(n.Value, "://")
	if n.Kind != yaml.ScalarNode || n.Line == 0 || !isInclude || scheme != "include-file" && scheme != "include-base64" {
		return nil
	}
	data, err := p.read(p.resolvePath(path))
	text := string(data)
	if scheme == "include-base64" {
		text = base64.StdEncoding.EncodeToString(data)
	}
	*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	return err
}

// addRelation takes a pair of endpoints, or one endpoint with a list of others.
func (p *parser) addRelation(n *yaml.Node) {
	var ends []charm.Strings
	if err := charm.DecodeYAML(n, &ends); err != nil || len(ends) != 2 || len(ends[0]) != 1 || len(ends[1]) == 0 {
		p.refuse("%s: line %d: a relation is a list of two: an endpoint, and another or a list of others", p.path, n.Line)
		return
	}
	for _, other := range ends[1] {
		p.Relations = append(p.Relations, [2]string{ends[0][0], other})
	}
}
