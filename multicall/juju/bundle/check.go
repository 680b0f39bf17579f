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
	placeNew  = state.PlaceNew // the place of a unit that gets a new machine
	maxErrors = 100            // the maximum number of errors that Parse reports
	maxUnits  = 10_000         // the maximum number of units in a bundle, so that a typing error cannot fill the store
)

// These are reasons for keys that bijou accepts and does not use.
const (
	forReaders = ""          // the key is only for human readers
	noEffect   = "no effect" // bijou does not need the key
)

// foreignKeys returns the keys of Juju's bundles that bijou knows and does not use, each with the reason: forReaders,
// noEffect or, for keys that request a missing feature, a clause for the bundle's Missing.
func foreignKeys() map[string]string {
	const (
		kubernetes = "bijou does not use Kubernetes"
		offers     = "models cannot offer anything to each other"
	)
	return map[string]string{
		"name":              forReaders,
		"description":       forReaders,
		"tags":              forReaders,
		"docs":              forReaders,
		"website":           forReaders,
		"issues":            forReaders,
		"source":            forReaders,
		"variables":         forReaders,
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

// checkKeys checks others, the keys of a part of the bundle that have no field in the part's struct. where names the
// part, and part is a value of the struct. A key that Juju's bundles do not have either is an error. checkKeys adds a
// key without effect to the bundle's Ignored. It adds a key that requests a missing feature to Missing, unless the
// key's value is null or false. Keys for human readers are only accepted.
func (p *parser) checkKeys(where string, others map[string]yaml.Node, part any) {
	foreign := foreignKeys()
	suggestions := slices.Sorted(maps.Keys(foreign))
	for _, field := range reflect.VisibleFields(reflect.TypeOf(part)) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		suggestions = append(suggestions, key)
	}

	for _, key := range slices.Sorted(maps.Keys(others)) {
		node := others[key]
		reason, isOfJuju := foreign[key]
		// A key that is null or false asks for nothing.
		isUsed := !isNull(&node) && node.Value != "false"

		switch {
		case !isOfJuju:
			hint := ""
			if meant := console.NearestWord(key, suggestions); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			p.refuse("%s: line %d: %s has an unknown key %q%s", p.path, node.Line, where, key, hint)
		case reason == noEffect:
			p.Ignored = append(p.Ignored, where+": "+key)
		case reason != forReaders && isUsed:
			p.Missing = append(p.Missing, fmt.Sprintf("%s: %s: %s", where, key, reason))
		}
	}
}

// checkContradictions adds errors for applications, machines and relations that contradict other parts of the
// bundle, or that cannot be deployed.
func (p *parser) checkContradictions() {
	if len(p.Applications) == 0 {
		p.refuse("the bundle has no application")
	}

	usedMachines := map[string]bool{}
	unitsLeft := maxUnits
	for _, name := range slices.Sorted(maps.Keys(p.Applications)) {
		a := p.Applications[name]
		p.checkApplication(name, a, unitsLeft)
		// An invalid number has its own error, and must not cause errors of other applications.
		if isNumberOfUnits(a.NumUnits, unitsLeft) {
			unitsLeft -= a.NumUnits
		}

		p.checkPlaces(name, a.To)
		for _, to := range a.To {
			usedMachines[placedMachine(to)] = true
		}
	}

	for _, id := range slices.Sorted(maps.Keys(p.Machines)) {
		n, err := strconv.Atoi(id)
		isNumber := err == nil && n >= 0
		if !isNumber || !usedMachines[id] {
			p.refuse("machine %q: want a number that an application's \"to\" names", id)
		}
	}

	for _, r := range p.Relations {
		for _, end := range r {
			name, _, _ := strings.Cut(end, ":")
			if p.Applications[name] == nil {
				p.refuse("relation %q: the bundle has no application %q", r, name)
			}
		}
	}
}

// checkApplication adds an error for the first problem that it finds in an application. The argument unitsLeft is
// the number of units that the bundle can have in addition to those of the applications before it.
func (p *parser) checkApplication(name string, a *Application, unitsLeft int) {
	err := charm.CheckService(name)
	switch {
	case err != nil:
		p.refuse("%w", err)
	case a.Charm == "":
		p.refuse("application %q has no charm", name)
	case a.NumUnits < 0:
		p.refuse("application %q: num_units is %d, but cannot be negative", name, a.NumUnits)
	case a.NumUnits > unitsLeft:
		p.refuse("application %q: num_units is %d, but all applications together can have at most %d units", name,
			a.NumUnits, maxUnits)
	case len(a.To) > a.NumUnits:
		p.refuse("application %q: \"to\" has more entries (%d) than there are units (num_units: %d)", name, len(a.To),
			a.NumUnits)
	}
}

// isNumberOfUnits reports whether an application can have n units if the bundle can have unitsLeft more units.
func isNumberOfUnits(n, unitsLeft int) bool { return n >= 0 && n <= unitsLeft }

// checkPlaces adds an error for each of the application's places that names a machine or an application that
// the bundle does not have. It accepts all containers.
func (p *parser) checkPlaces(name string, places []string) {
	for _, to := range places {
		if to == placeNew || isContainer(to) {
			// dropContainers replaces a container with a new machine.
			continue
		}

		_, isMachine := p.Machines[to]
		// A place beside a unit is APPLICATION or APPLICATION/NUMBER.
		other, _, _ := strings.Cut(to, "/")
		isBeside := p.Applications[other] != nil
		if !isMachine && !isBeside {
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

// dropStoreKeys removes the keys that only a charm from the store can have. It adds them to the bundle's Ignored
// or Missing.
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

// dropContainers replaces each container among the application's places with a new machine. It adds each to the
// bundle's Missing.
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

// CheckSecrets returns an error if the bundle changes an option of the type secret to a value that
// [state.View.CheckSecretOption] refuses, such as a secret that does not exist or is not granted to the
// application. A new application needs no grant yet. CheckSecrets returns the errors for all options as one.
func (c *Comparison) CheckSecrets(v *state.View) error {
	var errs []error
	for _, name := range c.names {
		w := c.wanted[name]
		for _, option := range slices.Sorted(maps.Keys(w.options)) {
			if !w.Config.Options[option].Secret {
				continue
			}
			value := w.options[option]
			if value == w.have.Options[option] {
				continue
			}
			isNew := !w.exists
			if err := v.CheckSecretOption(name, option, value, isNew); err != nil {
				errs = append(errs, fmt.Errorf("application %q: %w", name, err))
			}
		}
	}

	return errors.Join(errs...)
}

// isNull reports whether the node, or the node of which it is an alias, is null.
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
