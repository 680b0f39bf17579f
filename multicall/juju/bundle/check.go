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
		err := charm.CheckService(name)
		switch {
		case err != nil:
			p.refuse("%w", err)
		case a.Charm == "":
			p.refuse("application %q has no charm", name)
		case a.NumUnits < 0 || a.NumUnits > maxUnits-units:
			p.refuse("application %q: num_units is %d: want 0 to %d for all applications together", name,
				a.NumUnits, maxUnits)
		case len(a.To) > a.NumUnits:
			p.refuse("application %q: \"to\" has more entries (%d) than there are units (num_units: %d)", name, len(a.To),
				a.NumUnits)
		}

		if p.files.FromStore == nil || !p.files.FromStore(a.Charm) {
			p.refuseStoreKeys(nameApplication(name), a)
		}
		units += a.NumUnits
		p.checkPlaces(name, a, used)
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

// refuseStoreKeys removes the keys that only a charm from the store can have. It adds them to the bundle's
// Ignored or Missing.
func (p *parser) refuseStoreKeys(where string, a *Application) {
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

// checkPlaces adds an error for each of the application's places that is not in the bundle. It adds the named
// places to used, and replaces a container with a new machine.
func (p *parser) checkPlaces(name string, a *Application, used map[string]bool) {
	for i, to := range a.To {
		other, _, _ := strings.Cut(to, "/")
		if kind, machine, isContainer := strings.Cut(to, ":"); isContainer {
			used[machine] = true
			p.Missing = append(
				p.Missing,
				fmt.Sprintf(
					"application %q: cannot place a unit in %q: machines cannot contain containers (%q), so the unit gets a machine of its own",
					name, to, kind,
				),
			)
			a.To[i] = placeNew
		} else if _, isMachine := p.Machines[to]; !isMachine && to != placeNew && p.Applications[other] == nil {
			p.refuse("application %q: cannot place a unit at %q: the bundle has no such machine or application", name, to)
		}
		used[to] = true
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
