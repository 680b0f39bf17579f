package juju

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// writeDot draws the status in graphviz's language: services as boxes, relations as edges from who
// requires to who provides, labelled with their number and the relation's name at either end.
// Errors are red, dying entities dashed, services that only are the other end of a relation dotted.
func writeDot(w io.Writer, s status.Status) error {
	var b strings.Builder
	b.WriteString("digraph environment {\n  node [shape=box];\n")
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

// foreignServices are named by relations and are not in the status.
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

func writeBox(b *strings.Builder, name string, view status.Service) {
	a := attributes{"label": fmt.Sprintf("%s\n%s\n%s", name, view.Charm, formatCount(len(view.Units), "unit"))}
	for _, u := range view.Units {
		if isErrorState(u.State) {
			a["color"] = "red"
		}
	}

	if view.Exposed {
		a["peripheries"] = "2"
	}
	a.setLife(view.Life)
	writeLine(b, quoteDot(name), a)
}

// writeEdge draws a peer relation from its service to itself.
func writeEdge(b *strings.Builder, name string, r status.Relation) {
	provider, consumer := r.Ends()
	label := r.Services[consumer].Name
	if provider != consumer {
		label += " - " + r.Services[provider].Name
	}

	a := attributes{"label": name + "\n" + label}
	if isErrorState(r.State()) {
		a["color"] = "red"
	}
	a.setLife(r.Life)
	writeLine(b, quoteDot(consumer)+" -> "+quoteDot(provider), a)
}

type attributes map[string]string

func (a attributes) setLife(life state.Life) {
	if life != "" {
		a["style"] = "dashed"
	}
}

func writeLine(b *strings.Builder, what string, a attributes) {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		words = append(words, key+"="+quoteDot(a[key]))
	}
	fmt.Fprintf(b, "  %s [%s];\n", what, strings.Join(words, ", "))
}

// quoteDot quotes any text, with \" for a quote. Line ends become \n, which labels
// understand; other backslashes are doubled, since labels understand more than that.
func quoteDot(value string) string {
	lines := strings.Split(value, "\n")
	for i, line := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text.Escape(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// relationNames puts relations in error first, else sorts by number.
func relationNames(s status.Status) []string {
	return slices.SortedFunc(maps.Keys(s.Relations), func(a, b string) int {
		return compareErrorFirst(s.Relations[a].State(), s.Relations[b].State(),
			state.CompareIDs(strings.TrimPrefix(a, "relation-"), strings.TrimPrefix(b, "relation-")))
	})
}

func relationTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "PROVIDER", "CONSUMER", "STATE", "MESSAGE")
	t.PaintOnly("STATE")

	for _, name := range relationNames(s) {
		r := s.Relations[name]
		provider, consumer := r.Ends()
		addRow(t, r.State(), relationReason(r), name, r.Interface, provider+":"+r.Services[provider].Name,
			consumer+":"+r.Services[consumer].Name, status.WithLife(r.State(), r.Life))
	}

	return t
}

func relationReason(r status.Relation) reason {
	var all []reason
	for _, end := range r.Services {
		for unit, view := range end.Units {
			if view.Message != "" {
				shown := unit + ": " + text.FirstLine(view.Message)
				all = append(all, failureReason(shown, cmp.Or(view.Stderr, view.Logged), view.See))
			}
		}
	}

	if len(all) == 1 {
		return all[0]
	}

	var messages []string
	for _, why := range all {
		messages = append(messages, why.String())
	}
	slices.Sort(messages)
	return reason{text: strings.Join(messages, "; ")}
}

// relationUnitTable has a row for an end without units, too.
func relationUnitTable(s status.Status) *console.Table {
	t := console.NewTable("RELATION", "INTERFACE", "SCOPE", "ENDPOINT", "ROLE", "UNIT", "STATE", "MESSAGE")
	t.PaintOnly("STATE")

	for _, name := range relationNames(s) {
		r := s.Relations[name]

		for _, service := range slices.Sorted(maps.Keys(r.Services)) {
			end := r.Services[service]
			add := func(unit, shown string, why reason) {
				addRow(t, shown, why, name, r.Interface, string(r.Scope), service+":"+end.Name, string(end.Role),
					unit, status.WithLife(shown, r.Life))
			}

			if len(end.Units) == 0 {
				add("-", end.State, reason{})
			}

			for _, unit := range slices.SortedFunc(maps.Keys(end.Units), func(a, b string) int {
				return compareErrorFirst(end.Units[a].State, end.Units[b].State, charm.CompareUnits(a, b))
			}) {
				u := end.Units[unit]
				add(unit, u.State, relationUnitReason(u))
			}
		}
	}

	return t
}

func relationUnitReason(u status.RelationUnit) reason {
	shown := text.FirstLine(u.Message)
	switch {
	case u.Resolved != "":
		shown += " (marked as resolved)"
	case !u.NextRetry.IsZero():
		shown += retryText(u.NextRetry)
	}

	return failureReason(shown, cmp.Or(u.Stderr, u.Logged), u.See)
}
