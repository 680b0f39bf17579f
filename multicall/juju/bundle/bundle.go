// Package bundle handles bundles, which are files that describe applications, machines and relations. It
// parses bundles with their overlays, compares them with an environment, plans the steps of a deployment, and
// exports an environment as a bundle.
//
// The package does not change an environment, and reads files only through [Files].
package bundle

import (
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/state/charm"

	"gopkg.in/yaml.v3"
)

// Bundle is a bundle with its overlays applied.
type Bundle struct {
	Series       string                  `yaml:"series,omitempty"`
	Base         string                  `yaml:"default-base,omitempty"`
	Applications map[string]*Application `yaml:"applications"`
	Machines     map[string]Machine      `yaml:"machines,omitempty"`
	Relations    [][2]string             `yaml:"relations,omitempty"`

	Outside []string `yaml:"-"` // files of options and resources that are outside of the directory of the file that names them
	Missing []string `yaml:"-"` // features that the bundle requests and bijou does not have
	Ignored []string `yaml:"-"` // keys without effect
}

// Application is an application in a bundle. [Parse] makes the paths of its files absolute.
type Application struct {
	Charm       string               `yaml:"charm"`
	Channel     string               `yaml:"channel,omitempty"`  // the store's channel
	Revision    *int                 `yaml:"revision,omitempty"` // the store's revision
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

	Revisions map[string]int `yaml:"-"` // the store's revisions of resources

	Rest map[string]yaml.Node `yaml:",inline"` // all other keys; Parse checks and removes them
}

// Machine is a machine in a bundle. Units refer to it by its number.
type Machine struct {
	Series      string `yaml:"series,omitempty"`
	Base        string `yaml:"base,omitempty"`
	Constraints string `yaml:"constraints,omitempty"`

	Rest map[string]yaml.Node `yaml:",inline"` // all other keys; Parse checks them
}

// document is one of a file's YAML documents. The first is the bundle, and the others are overlays.
type document struct {
	Series       string               `yaml:"series"`
	Base         string               `yaml:"default-base"`
	Applications map[string]yaml.Node `yaml:"applications"`
	Services     map[string]yaml.Node `yaml:"services"` // the previous name of the key applications
	Machines     map[string]Machine   `yaml:"machines"`
	Relations    []yaml.Node          `yaml:"relations"`

	Rest map[string]yaml.Node `yaml:",inline"` // all other keys
}

// Files gives access to the files of a bundle.
type Files struct {
	Read func(path string) ([]byte, error)
	// Resolve returns a path with its symlinks resolved. It can be nil if there are no symlinks.
	Resolve func(path string) string
	// ReadOutside allows files outside of the directory of the file that names them. Without it, an option
	// whose value is in such a file keeps the reference to the file as its value.
	ReadOutside bool
	// FromStore reports whether an application's charm is in the store. If it is nil, no charm is in the
	// store.
	FromStore func(charm string) bool
}

// parser builds a bundle from its files, and collects the errors in them. A place is a text such as
// `application "a": option "b"`.
type parser struct {
	*Bundle
	files    Files
	path     string             // the file that is being read
	outside  map[string]string  // files outside of the directory, by the place of the option or resource that names them
	includes map[string]include // options whose values are in files, by the place of the option
	errs     []error
}

// include is an option whose value is in a file.
type include struct {
	application, option string
	by                  string // the bundle or overlay that names the file
	scheme, path        string
}

// refuse adds an error. It drops errors after the first maxErrors.
func (p *parser) refuse(format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, fmt.Errorf(format, args...))
	}
}

// Parse reads the bundle at the first path, and applies the overlays at the other paths to it, one after the
// other. The paths must be absolute. An overlay changes an application key by key, and null removes an
// application, a key, an option, a resource or a storage. An overlay's relations are added, and its machines replace the previous ones.
//
// Parse stops at the first path whose file it cannot read or parse, and returns only that error. Otherwise it
// returns the errors in the bundle as one error, up to a limit. With an error, it also returns the part of the
// bundle that it has read.
func Parse(files Files, paths ...string) (*Bundle, error) {
	p := &parser{
		Bundle:   &Bundle{Applications: map[string]*Application{}},
		files:    files,
		outside:  map[string]string{},
		includes: map[string]include{},
	}

	for _, path := range paths {
		data, err := files.Read(path)
		if err != nil {
			return p.Bundle, fmt.Errorf("%s: %w", path, err)
		}
		docs, err := charm.ParseYAML(data)
		if err != nil {
			return p.Bundle, fmt.Errorf("%s: %w", path, err)
		}

		p.path = path
		for _, doc := range docs {
			p.overlay(doc)
		}
	}

	for _, place := range slices.Sorted(maps.Keys(p.includes)) {
		p.readInclude(place, p.includes[place])
	}
	for _, place := range slices.Sorted(maps.Keys(p.outside)) {
		p.Outside = append(p.Outside, place+": "+p.outside[place])
	}
	// A part that has an error is missing, so further checks would report errors that only follow from it.
	if len(p.errs) == 0 {
		p.checkContradictions()
		p.dropUnsupported()
	}

	return p.Bundle, errors.Join(p.errs...)
}

// overlay applies one document of a bundle or overlay to the result of the previous documents.
func (p *parser) overlay(doc *yaml.Node) {
	var d document
	if err := charm.DecodeYAML(doc, &d); err != nil {
		p.refuse("%s: %w", p.path, err)
		return
	}

	p.checkKeys("the bundle", d.Rest, d)
	// A new series also replaces a previous base, and the reverse.
	if d.Series != "" || d.Base != "" {
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

// overlayApplication applies the value n of an application in the current file to the same application in
// earlier files. Null removes the application. overlayApplication records the files that options include,
// since Parse reads them at the end.
func (p *parser) overlayApplication(name string, n *yaml.Node) {
	if isNull(n) {
		p.removeApplication(name)
		return
	}

	a := p.Applications[name]
	if a == nil {
		a = &Application{}
		p.Applications[name] = a
	}

	earlierResources := maps.Clone(a.Resources)
	// Keys that this file does not have keep their values.
	if err := charm.DecodeYAML(n, a); err != nil {
		// The checks below continue with the keys that could be decoded.
		p.refuse("%s: application %q: %w", p.path, name, err)
	}
	removeNulls(a, earlierResources, n)
	// Null can also come by a YAML merge, which removeNulls does not see.
	if a.Options == nil {
		p.forgetFiles(nameApplication(name) + ": option ")
	}
	if a.Resources == nil {
		a.Revisions = nil
		p.forgetFiles(nameApplication(name) + ": resource ")
	}

	place := nameApplication(name)
	p.checkKeys(place, a.Rest, *a)
	a.Rest = nil

	// The charm can be outside of the file's directory without a note in p.outside. The plan shows the
	// charm's path, and only the application's own units get its content.
	if strings.HasPrefix(a.Charm, ".") {
		a.Charm = p.resolvePath(a.Charm)
	}

	for _, option := range slices.Sorted(maps.Keys(a.Options)) {
		p.overlayOption(name, a, option)
	}

	p.resolveResources(place, a, earlierResources)
}

// removeApplication removes an application with its relations and includes, and its files in p.outside.
func (p *parser) removeApplication(name string) {
	delete(p.Applications, name)
	maps.DeleteFunc(p.outside, func(place, _ string) bool {
		return strings.HasPrefix(place, nameApplication(name)+": ")
	})
	maps.DeleteFunc(p.includes, func(_ string, i include) bool { return i.application == name })
	p.Relations = slices.DeleteFunc(p.Relations, func(r [2]string) bool {
		return isOf(name, r[0]) || isOf(name, r[1])
	})
}

// removeNulls removes the texts and numbers of an application that are null in n, its value in the current file, after
// n was decoded. It also removes single resources and storages. The decoder keeps an earlier value for these. earlier
// contains the resources' files from earlier files.
func removeNulls(a *Application, earlier map[string]string, n *yaml.Node) {
	for key, value := range pairs(n) {
		if isNull(value) {
			switch key {
			case "charm":
				a.Charm = ""
			case "channel":
				a.Channel = ""
			case "series":
				a.Series = ""
			case "base":
				a.Base = ""
			case "num_units":
				a.NumUnits = 0
			}
			continue
		}

		for entryName, entry := range pairs(value) {
			switch {
			case !isNull(entry):
			case key == "resources" && earlier[entryName] != "":
				a.Resources[entryName] = "" // resolveResources removes it
			case key == "storage":
				delete(a.Storage, entryName)
			}
		}
	}
}

// forgetFiles forgets the files that options or resources named in earlier files. prefix begins their places in the
// bundle.
func (p *parser) forgetFiles(prefix string) {
	maps.DeleteFunc(p.outside, func(place, _ string) bool { return strings.HasPrefix(place, prefix) })
	maps.DeleteFunc(p.includes, func(place string, _ include) bool { return strings.HasPrefix(place, prefix) })
}

// pairs returns the keys and values of a mapping, or of the mapping of which n is an alias. It returns nothing for any
// other node.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// overlayOption completes an option of the application after the current file was decoded. It resolves a YAML
// alias, removes the option if the value is null, and records the include if the value names a file.
func (p *parser) overlayOption(name string, a *Application, option string) {
	value := a.Options[option]
	if value.Kind == yaml.AliasNode {
		value = *value.Alias
		a.Options[option] = value
	}

	// The value is an include that an earlier file has named. textNode has created it, so it has no line.
	isEarlierInclude := value.Kind == yaml.ScalarNode && value.Line == 0
	if isEarlierInclude {
		return
	}

	// The value replaces that of an earlier file.
	place := fmt.Sprintf("%s: option %q", nameApplication(name), option)
	delete(p.outside, place)
	delete(p.includes, place)
	if isNull(&value) {
		delete(a.Options, option)
		return
	}

	if scheme, path, isInclude := parseInclude(&value); isInclude {
		p.includes[place] = include{
			application: name,
			option:      option,
			by:          p.path,
			scheme:      scheme,
			path:        p.resolveContent(path, place),
		}
		a.Options[option] = textNode(value.Value)
	}
}

// nameApplication returns the application's place in the bundle, for messages.
func nameApplication(name string) string { return fmt.Sprintf("application %q", name) }

// resolveResources completes the application's resources after the current file was decoded. It makes the
// paths in this file absolute, moves revisions to a.Revisions, and removes empty values. The argument earlier
// contains the paths from earlier files, which are already absolute. The argument appPlace is the
// application's place in the bundle.
func (p *parser) resolveResources(appPlace string, a *Application, earlier map[string]string) {
	files := a.Resources
	for _, resource := range slices.Sorted(maps.Keys(files)) {
		value := files[resource]
		place := fmt.Sprintf("%s: resource %q", appPlace, resource)
		// The map files keeps no revisions, so this file replaces a revision from an earlier file.
		delete(a.Revisions, resource)

		revision, err := strconv.Atoi(value)
		isRevision := err == nil
		if value == "" || isRevision {
			// The resource no longer has a file.
			delete(files, resource)
			delete(p.outside, place)
		}

		switch {
		case isRevision:
			if a.Revisions == nil {
				a.Revisions = map[string]int{}
			}
			a.Revisions[resource] = revision
		case value != "" && value != earlier[resource]:
			files[resource] = p.resolveContent(value, place)
		}
	}
}

// resolvePath returns the absolute form of a path in the file that is being read.
func (p *parser) resolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.path), path)
}

// resolveContent returns the absolute path of a file whose content a charm will get. place is the option or
// resource that names the path. p.outside gets an entry for place if the path leads out of the directory of the
// current file. Otherwise it loses such an entry from an earlier file.
func (p *parser) resolveContent(path, place string) string {
	path = p.resolvePath(path)
	delete(p.outside, place)
	if destination, isOutside := p.leavesDir(path); isOutside {
		p.outside[place] = destination
	}
	return path
}

// leavesDir reports whether an absolute path leads out of the directory of the current file, possibly through
// symlinks. The result destination describes where the path leads. It is the path itself and, if there are
// symlinks, their target.
func (p *parser) leavesDir(path string) (destination string, isOutside bool) {
	dir := filepath.Dir(p.path)
	target := filepath.Clean(path)
	if resolve := p.files.Resolve; resolve != nil {
		dir = resolve(dir)
		target = resolve(target)
	}

	relative, err := filepath.Rel(dir, target)
	isOutside = err != nil || relative == ".." || strings.HasPrefix(relative, "../")
	if target != filepath.Clean(path) {
		return fmt.Sprintf("%s, which is %s", path, target), isOutside
	}
	return path, isOutside
}

// parseInclude parses an option's value that names a file: include-file://PATH or include-base64://PATH. The
// result isInclude is false for any other value.
func parseInclude(n *yaml.Node) (scheme, path string, isInclude bool) {
	scheme, path, isURL := strings.Cut(n.Value, "://")
	isInclude = n.Kind == yaml.ScalarNode && isURL && (scheme == "include-file" || scheme == "include-base64")
	return scheme, path, isInclude
}

// readInclude replaces an option's value that names a file with the file's content. Parse calls it after all
// overlays, since an overlay can remove the value. It keeps the value if the file is outside of the
// directory, and files outside must not be read.
func (p *parser) readInclude(place string, i include) {
	if _, isOutside := p.outside[place]; isOutside && !p.files.ReadOutside {
		return
	}
	data, err := p.files.Read(i.path)
	if err != nil {
		p.refuse("%s: %s: %w", i.by, place, err)
		return
	}

	text := string(data)
	if i.scheme == "include-base64" {
		text = base64.StdEncoding.EncodeToString(data)
	}
	p.Applications[i.application].Options[i.option] = textNode(text)
}

// textNode returns a YAML string that belongs to no line of the bundle.
func textNode(text string) yaml.Node {
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// addRelation adds relations from a pair of endpoints, or from one endpoint with a list of others. If the node
// has a different form, it adds an error.
func (p *parser) addRelation(n *yaml.Node) {
	var ends []charm.Strings
	err := charm.DecodeYAML(n, &ends)
	isValid := err == nil && len(ends) == 2 && len(ends[0]) == 1 && len(ends[1]) > 0
	if !isValid {
		p.refuse("%s: line %d: a relation must be a list of two items: an endpoint, and one other endpoint or a list of them",
			p.path, n.Line)
		return
	}

	for _, other := range ends[1] {
		p.Relations = append(p.Relations, [2]string{ends[0][0], other})
	}
}
