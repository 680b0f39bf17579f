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

	Outside []string `yaml:"-"` // what options and resources name outside of the folder of the file that names it
	Missing []string `yaml:"-"` // what it asks for and bijou does not have
	Ignored []string `yaml:"-"` // what it says that has no effect
}

// Application is one application. The files that it names are below the folder of the
// bundle, or the overlay, that names them.
type Application struct {
	Charm       string               `yaml:"charm"`
	Channel     string               `yaml:"channel,omitempty"`  // of the store
	Revision    *int                 `yaml:"revision,omitempty"` // in the store
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

	Revisions map[string]int `yaml:"-"` // of resources, in the store

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

// Files are where a bundle is read from.
type Files struct {
	Read func(path string) ([]byte, error)
	// Resolve returns a path without the symlinks in it; nil: there are none.
	Resolve func(path string) string
	// ReadOutside: files outside of the folder of the file that names them are read, too. Else
	// an option that is in one keeps the text that names it.
	ReadOutside bool
	// FromStore reports whether an application's charm is one of the store's; nil: none is.
	FromStore func(charm string) bool
}

// parser gathers a bundle from its files, and all that is wrong with it.
type parser struct {
	*Bundle
	files    Files
	path     string             // of the file that is read
	outside  map[string]string  // what names a file outside of its folder, and the file
	includes map[string]include // the options that are in a file
	errs     []error
}

// include is an option whose value is in a file.
type include struct {
	application, option string
	by                  string // the file that says so
	scheme, path        string
}

// refuse adds an error, unless there are already more than anybody reads.
func (p *parser) refuse(format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, fmt.Errorf(format, args...))
	}
}

// Parse reads a bundle and lays the overlays over it, one after the other. The paths are absolute. An
// overlay changes an application key by key, and null removes a key. Its relations are added, and its
// machines replace the former ones.
func Parse(files Files, paths ...string) (*Bundle, error) {
	p := &parser{
		Bundle:   &Bundle{Applications: map[string]*Application{}},
		files:    files,
		outside:  map[string]string{},
		includes: map[string]include{},
	}

	for _, p.path = range paths {
		var docs []*yaml.Node
		data, err := files.Read(p.path)
		if err != nil {
			return p.Bundle, fmt.Errorf("%s: %w", p.path, err)
		}

		docs, err = charm.ParseYAML(data)
		if err != nil {
			return p.Bundle, fmt.Errorf("%s: %w", p.path, err)
		}

		for _, doc := range docs {
			p.overlay(doc)
		}
	}

	for _, where := range slices.Sorted(maps.Keys(p.includes)) {
		p.readInclude(where, p.includes[where])
	}
	for _, where := range slices.Sorted(maps.Keys(p.outside)) {
		p.Outside = append(p.Outside, where+": "+p.outside[where])
	}
	if len(p.errs) == 0 {
		p.check()
	}

	return p.Bundle, errors.Join(p.errs...)
}

// overlay lays one document of a bundle over those before it.
func (p *parser) overlay(doc *yaml.Node) {
	var d document
	if err := charm.DecodeYAML(doc, &d); err != nil {
		p.refuse("%s: %w", p.path, err)
		return
	}

	p.checkKeys("the bundle", d.Rest, d)
	if d.Series+d.Base != "" {
		p.Series = d.Series
		p.Base = d.Base
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

// overlayApplication lays an application of one file over the one of the files before; null removes it. It
// notes the files that options include, which are read at the end.
func (p *parser) overlayApplication(name string, n *yaml.Node) {
	if isNull(n) {
		delete(p.Applications, name)
		maps.DeleteFunc(p.outside, func(where, _ string) bool {
			return strings.HasPrefix(where, nameApplication(name)+": ")
		})
		maps.DeleteFunc(p.includes, func(_ string, i include) bool { return i.application == name })
		p.Relations = slices.DeleteFunc(p.Relations, func(r [2]string) bool {
			return isOf(name, r[0]) || isOf(name, r[1])
		})

		return
	}

	a := p.Applications[name]
	if a == nil {
		a = &Application{}
		p.Applications[name] = a
	}

	resources := maps.Clone(a.Resources)
	if err := charm.DecodeYAML(n, a); err != nil { // what it does not say stays as it was
		p.refuse("%s: application %q: %w", p.path, name, err)
	}
	where := nameApplication(name)
	p.checkKeys(where, a.Rest, *a)
	a.Rest = nil
	if strings.HasPrefix(a.Charm, ".") {
		a.Charm = p.resolvePath(a.Charm) // which the plan shows; it is handed to nobody but its own units
	}

	for _, option := range slices.Sorted(maps.Keys(a.Options)) {
		value := a.Options[option]
		where := fmt.Sprintf("%s: option %q", where, option)
		if value.Kind == yaml.AliasNode {
			value = *value.Alias
			a.Options[option] = value
		}
		if value.Kind == yaml.ScalarNode && value.Line == 0 {
			continue // of a file before this, which named a file
		}

		delete(p.outside, where)
		delete(p.includes, where)
		if isNull(&value) {
			delete(a.Options, option)
			continue
		}

		if scheme, path, isInclude := parseInclude(&value); isInclude {
			p.includes[where] = include{
				application: name,
				option:      option,
				by:          p.path,
				scheme:      scheme,
				path:        p.resolveContent(path, where),
			}
			a.Options[option] = textNode(value.Value)
		}
	}

	p.resolveResources(where, a, resources)
}

func nameApplication(name string) string { return fmt.Sprintf("application %q", name) }

// resolveResources resolves the paths of an application's resources against this file's directory, except
// those that an earlier file gave.
func (p *parser) resolveResources(where string, a *Application, before map[string]string) {
	files := a.Resources
	for _, resource := range slices.Sorted(maps.Keys(files)) {
		path := files[resource]
		where := fmt.Sprintf("%s: resource %q", where, resource)
		revision, err := strconv.Atoi(path)
		isRevision := err == nil
		if path == "" || isRevision {
			delete(files, resource)
			delete(p.outside, where)
		}

		delete(a.Revisions, resource)
		if isRevision {
			if a.Revisions == nil {
				a.Revisions = map[string]int{}
			}
			a.Revisions[resource] = revision
			continue
		}

		if path != "" && path != before[resource] {
			files[resource] = p.resolveContent(path, where)
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

// resolveContent returns the path of a file whose content goes to a charm. It notes a path that leads out
// of the directory of the file that names it.
func (p *parser) resolveContent(path, where string) string {
	path = p.resolvePath(path)
	delete(p.outside, where)
	if at, isOutside := p.leavesFolder(path); isOutside {
		p.outside[where] = at
	}
	return path
}

// leavesFolder reports whether a path leads out of the folder of the file that names it, through
// symlinks, too, and says where it leads to.
func (p *parser) leavesFolder(path string) (at string, isOutside bool) {
	folder := filepath.Dir(p.path)
	target := filepath.Clean(path)
	if resolve := p.files.Resolve; resolve != nil {
		folder, target = resolve(folder), resolve(target)
	}

	relative, err := filepath.Rel(folder, target)
	isOutside = err != nil || relative == ".." || strings.HasPrefix(relative, "../")
	if target != filepath.Clean(path) {
		return fmt.Sprintf("%s, which is %s", path, target), isOutside
	}
	return path, isOutside
}

// parseInclude reads a value that names a file.
func parseInclude(n *yaml.Node) (scheme, path string, isInclude bool) {
	scheme, path, isURL := strings.Cut(n.Value, "://")
	isInclude = n.Kind == yaml.ScalarNode && isURL && (scheme == "include-file" || scheme == "include-base64")
	return scheme, path, isInclude
}

// readInclude replaces a value that names a file by the file's content. This happens after all overlays,
// since an overlay may have removed the value.
func (p *parser) readInclude(where string, i include) {
	if _, isOutside := p.outside[where]; isOutside && !p.files.ReadOutside {
		return
	}
	data, err := p.files.Read(i.path)
	if err != nil {
		p.refuse("%s: %s: %w", i.by, where, err)
		return
	}

	text := string(data)
	if i.scheme == "include-base64" {
		text = base64.StdEncoding.EncodeToString(data)
	}
	p.Applications[i.application].Options[i.option] = textNode(text)
}

// textNode returns a YAML text that belongs to no line of the bundle.
func textNode(text string) yaml.Node {
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// addRelation adds relations from a pair of endpoints, or from one endpoint with a list of others.
func (p *parser) addRelation(n *yaml.Node) {
	var ends []charm.Strings
	if err := charm.DecodeYAML(n, &ends); err != nil || len(ends) != 2 || len(ends[0]) != 1 || len(ends[1]) == 0 {
		p.refuse("%s: line %d: a relation is a list of two: an endpoint, and another or a list of others",
			p.path, n.Line)
		return
	}

	for _, other := range ends[1] {
		p.Relations = append(p.Relations, [2]string{ends[0][0], other})
	}
}
