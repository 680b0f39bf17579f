package juju

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/text"
)

// writeDot draws the status in graphviz's language. Services are boxes. Relations are edges from the
// requiring to the providing service. The label of an edge shows the relation's id, such as relation-2, and its
// name at each end. Entities in error are red, and entities that are not alive are dashed. A service is dotted if
// the status shows only its relations.
func writeDot(w io.Writer, s status.Status) error {
	var b strings.Builder
	b.WriteString("digraph model {\n  node [shape=box];\n")
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		writeBox(&b, name, s.Services[name])
	}
	for _, name := range foreignServices(s) {
		writeLine(&b, quoteDot(name), attributes{"label": name, "style": "dotted"})
	}

	for _, name := range relationNames(s) {
		writeEdge(&b, name, s.Relations[name])
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// foreignServices returns the services that relations name but that are not part of the status.
func foreignServices(s status.Status) []string {
	names := map[string]bool{}
	for _, r := range s.Relations {
		for name := range r.Services {
			if _, ok := s.Services[name]; !ok {
				names[name] = true
			}
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// writeBox writes an application's node of the graph. The node is red if a unit is in error, is dashed if the
// application is not alive, and has a double border if the application is exposed.
func writeBox(b *strings.Builder, name string, s status.Service) {
	a := attributes{"label": fmt.Sprintf("%s\n%s\n%s", name, s.Charm, formatCount(len(s.Units), "unit"))}
	for _, u := range s.Units {
		if status.IsErrorState(u.State) {
			a["color"] = "red"
		}
	}

	if s.Exposed {
		a["peripheries"] = "2"
	}
	a.setLife(s.Life)
	writeLine(b, quoteDot(name), a)
}

// writeEdge writes a relation's edge of the graph. A peer relation is an edge from a service to itself.
func writeEdge(b *strings.Builder, name string, r status.Relation) {
	provider, consumer := r.Ends()
	label := r.Services[consumer].Name
	if provider != consumer {
		label += " - " + r.Services[provider].Name
	}

	a := attributes{"label": name + "\n" + label}
	if status.IsErrorState(r.State()) {
		a["color"] = "red"
	}
	a.setLife(r.Life)
	writeLine(b, quoteDot(consumer)+" -> "+quoteDot(provider), a)
}

type attributes map[string]string

// setLife draws an entity that is not alive as dashed.
func (a attributes) setLife(life state.Life) {
	if life != "" {
		a["style"] = "dashed"
	}
}

// writeLine writes a node or an edge with its attributes.
func writeLine(b *strings.Builder, element string, a attributes) {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		words = append(words, key+"="+quoteDot(a[key]))
	}
	fmt.Fprintf(b, "  %s [%s];\n", element, strings.Join(words, ", "))
}

// quoteDot quotes any text, with \" for a quote. Line ends become \n, which labels understand. Other backslashes
// are doubled, since they would also begin an escape sequence in labels.
func quoteDot(value string) string {
	lines := strings.Split(value, "\n")
	for i, line := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text.Escape(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// relationNames returns the relations' names in the order of their numbers, with relations in error first.
func relationNames(s status.Status) []string {
	return slices.SortedFunc(maps.Keys(s.Relations), func(a, b string) int {
		byNumber := state.CompareIDs(strings.TrimPrefix(a, "relation-"), strings.TrimPrefix(b, "relation-"))
		return compareErrorFirst(s.Relations[a].State(), s.Relations[b].State(), byNumber)
	})
}
