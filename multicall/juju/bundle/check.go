package bundle

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"

	"gopkg.in/yaml.v3"
)

const (
	placeNew  = state.PlaceNew // the place of a unit that gets its own machine
	maxErrors = 100
	maxUnits  = 10_000 // the maximum for a bundle, so that a typing error cannot fill the store
)

// noEffect is the reason for keys that bijou does not need.
const noEffect = "no effect"

// foreignKeys returns the keys of Juju's bundles that have no effect here, with the reason. Keys that are
// only for human readers have no reason.
func foreignKeys() map[string]string {
	const kubernetes, offers = "bijou does not use Kubernetes", "models cannot offer anything to each other"
	return map[string]string{
		"name":              "",
		"description":       "",
		"tags":              "",
		"docs":              "",
		"website":           "",
		"issues":            "",
		"source":            "",
		"variables":         "",
		"annotations":       noEffect,
		"plan":              noEffect,
		"bindings":          noEffect,
		"bundle":            kubernetes,
		"scale":             kubernetes,
		"placement":         kubernetes,
		"devices":           "bijou has no devices",
		"saas":              offers,
		"offers":            offers,
		"exposed-endpoints": "an application is exposed as a whole",
	}
}

// checkKeys adds an error for unknown keys, and a note for keys without effect.
func (p *parser) checkKeys(where string, rest map[string]yaml.Node, known any) {
	foreign := foreignKeys()
	words := slices.Sorted(maps.Keys(foreign))
	for _, field := range reflect.VisibleFields(reflect.TypeOf(known)) {
		word, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		words = append(words, word)
	}

	for _, key := range slices.Sorted(maps.Keys(rest)) {
		node := rest[key]
		switch reason, isForeign := foreign[key]; {
		case !isForeign:
			hint := ""
			if meant := console.NearestWord(key, words); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			p.refuse("%s: line %d: %s has an unknown key %q%s", p.path, node.Line, where, key, hint)
		case reason == noEffect:
			p.Ignored = append(p.Ignored, where+": "+key)
		case reason != "" && !isNull(&node) && node.Value != "false":
			p.Missing = append(p.Missing, fmt.Sprintf("%s: %s: %s", where, key, reason))
		}
	}
}

// check adds an error for each contradiction in the bundle.
func (p *parser) check() {
	if len(p.Applications) == 0 {
		p.refuse("the bundle has no application")
	}

	used := map[string]bool{}
	units := 0
	for _, name := range slices.Sorted(maps.Keys(p.Applications)) {
		a := p.Applications[name]
		isNumberValid := a.NumUnits >= 0 && a.NumUnits <= maxUnits-units
		err := charm.CheckService(name)
		switch {
		case err != nil:
			p.refuse("%w", err)
		case a.Charm == "":
			p.refuse("application %q has no charm", name)
		case !isNumberValid:
			p.refuse("application %q: num_units is %d: want 0 to %d for all applications together", name,
				a.NumUnits, maxUnits)
		case len(a.To) > a.NumUnits:
			p.refuse("application %q: \"to\" has more entries (%d) than there are units (num_units: %d)", name, len(a.To),
				a.NumUnits)
		}

		if isNumberValid {
			units += a.NumUnits
		}
		p.checkPlaces(name, a.To)
		for _, to := range a.To {
			used[placedMachine(to)] = true
		}
	}

	for _, id := range slices.Sorted(maps.Keys(p.Machines)) {
		if n, err := strconv.Atoi(id); err != nil || n < 0 || !used[id] {
			p.refuse("machine %q: want a number that an application's \"to\" names", id)
		}
	}

	for _, r := range p.Relations {
		for _, end := range r {
			if name, _, _ := strings.Cut(end, ":"); p.Applications[name] == nil {
				p.refuse("relation %q: the bundle has no application %q", r, name)
			}
		}
	}
}

// checkPlaces adds an error for each of the application's places that is not in the bundle.
func (p *parser) checkPlaces(name string, places []string) {
	for _, to := range places {
		other, _, _ := strings.Cut(to, "/")
		_, isMachine := p.Machines[to]
		if !isContainer(to) && !isMachine && to != placeNew && p.Applications[other] == nil {
			p.refuse("application %q: cannot place a unit at %q: the bundle has no such machine or application", name, to)
		}
	}
}

// isContainer reports whether a place is a container on a machine, such as lxd:0.
func isContainer(place string) bool { return strings.Contains(place, ":") }

// placedMachine returns the machine of a place: 0 for 0 and for lxd:0. It returns other places unchanged.
func placedMachine(place string) string {
	if _, machine, found := strings.Cut(place, ":"); found {
		return machine
	}
	return place
}

// dropUnsupported removes the parts of the bundle that bijou does not support. It adds each of them to the
// bundle's Ignored or Missing.
func (p *parser) dropUnsupported() {
	for _, name := range slices.Sorted(maps.Keys(p.Applications)) {
		a := p.Applications[name]
		if p.files.FromStore == nil || !p.files.FromStore(a.Charm) {
			p.dropStoreKeys(nameApplication(name), a)
		}
		p.dropContainers(name, a)
	}
}

// dropStoreKeys removes the keys that only a charm from the store can have.
func (p *parser) dropStoreKeys(where string, a *Application) {
	if a.Channel != "" {
		p.Ignored = append(p.Ignored, where+": channel")
	}
	if a.Revision != nil {
		p.Ignored = append(p.Ignored, where+": revision")
	}
	for _, resource := range slices.Sorted(maps.Keys(a.Revisions)) {
		p.Missing = append(p.Missing, fmt.Sprintf("%s: resource %q: a revision (%d) needs a charm from the store; give a file",
			where, resource, a.Revisions[resource]))
	}
	a.Channel = ""
	a.Revision = nil
	a.Revisions = nil
}

// dropContainers replaces each container among the application's places with a new machine.
func (p *parser) dropContainers(name string, a *Application) {
	for i, to := range a.To {
		if !isContainer(to) {
			continue
		}
		kind, _, _ := strings.Cut(to, ":")
		p.Missing = append(p.Missing, fmt.Sprintf(
			"application %q: cannot place a unit in %q: machines cannot contain containers (%q), so the unit gets a machine of its own",
			name, to, kind,
		))
		a.To[i] = placeNew
	}
}

// CheckSecrets returns an error if the bundle sets an option to a secret that does not exist, or is not granted to
// the application.
func (c *Comparison) CheckSecrets(v *state.View) error {
	var errs []error
	for _, name := range c.names {
		w := c.wanted[name]
		for _, option := range slices.Sorted(maps.Keys(w.options)) {
			if value := w.options[option]; w.Config.Options[option].Secret && value != w.have.Options[option] {
				if err := v.CheckSecretOption(name, option, value, !w.isThere); err != nil {
					errs = append(errs, fmt.Errorf("application %q: %w", name, err))
				}
			}
		}
	}

	return errors.Join(errs...)
}

func isNull(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.ShortTag() == "!!null"
}

// isOf reports whether an endpoint belongs to the application.
func isOf(application, endpoint string) bool {
	return endpoint == application || strings.HasPrefix(endpoint, application+":")
}
