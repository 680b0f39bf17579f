package juju

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// isEyeCatching reports whether a row's message must not be cut, since the operator may have to act on an
// entity in that state.
func isEyeCatching(word string) bool {
	return status.IsErrorState(word) || word == "blocked" || word == "waiting"
}

// wordColour returns the colour of a status: green for a good status, yellow for "installing" and "stopped", and
// otherwise the colour that stateColour returns.
func wordColour(word string) console.Colour {
	switch word {
	case "active", "available", "running", "up":
		return console.Green
	case "installing", "stopped":
		return console.Yellow
	}

	return stateColour(word)
}

// applicationWord returns the status that the application's leader has set. If it has set none, applicationWord
// returns the most urgent status of the application's units, or "-" without units.
func applicationWord(s status.Service) string {
	if s.Status != nil {
		return s.StatusInfo().Current
	}

	words := map[string]bool{}
	for _, u := range s.Units {
		words[u.Word()] = true
	}
	for _, word := range []string{"error", "down", "blocked", "installing", "maintenance", "waiting", "active"} {
		if words[word] {
			return word
		}
	}

	// All other words are equally urgent, so take the first by name.
	others := slices.Sorted(maps.Keys(words))
	if len(others) == 0 {
		return "-"
	}
	return others[0]
}

// applicationTable returns a table with a row for each application.
func applicationTable(s status.Status) *console.Table {
	t := console.NewTable("APPLICATION", "STATUS", "UNITS", "CHARM", "VERSION", "EXPOSED", "MESSAGE")
	t.PaintOnly("STATUS")
	// These columns can be left out, if they are empty or for lack of space.
	t.Spare("VERSION", "EXPOSED", "MESSAGE")

	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		word := applicationWord(service)
		exposed := ""
		if service.Exposed {
			exposed = "yes"
		}

		// The messages of units are in the rows of the units.
		message := ""
		if service.Status != nil {
			message = text.FirstLine(service.Status.Message)
		}

		charmName := service.Charm[strings.LastIndexByte(service.Charm, '/')+1:]
		addRow(t, word, reason{text: message}, name, status.WithLife(word, service.Life),
			strconv.Itoa(len(service.Units)), charmName, text.FirstLine(service.Version), exposed)
	}

	return t
}

// addRow adds a row in the colour of the word. The reason becomes the last cell, which is never cut if the
// operator may have to act on it.
func addRow(t *console.Table, word string, why reason, cells ...string) {
	if isEyeCatching(word) {
		t.AddWhole(wordColour(word), why.seeAlso(), append(cells, why.text)...)
		return
	}
	t.Add(wordColour(word), append(cells, why.String())...)
}

// unitTable returns the table of units, with units in error first.
func unitTable(s status.Status, now time.Time) *console.Table {
	t := console.NewTable("UNIT", "STATUS", "AGENT", "SINCE", "MACHINE", "ADDRESS", "PORTS", "MESSAGE")
	t.PaintOnly("STATUS")
	// These columns can be left out, if they are empty or for lack of space.
	t.Spare("AGENT", "ADDRESS", "PORTS", "MESSAGE")

	units := allUnits(s)
	words := map[string]string{}
	for name, u := range units {
		words[name] = u.Word()
	}

	names := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return compareErrorFirst(words[a], words[b], charm.CompareUnits(a, b))
	})
	for _, name := range names {
		u := units[name]
		word := words[name]
		agent := u.AgentInfo().Current
		if agent == "idle" {
			// The usual state is left out, so that all other states stand out.
			agent = ""
		}

		shown := name
		if u.Leader {
			// The star follows a space, since scripts search for the name as a word.
			shown += " *"
		}
		addRow(t, word, screenReason(u), shown, status.WithLife(word, u.Life), agent,
			formatAgo(u.Since(), now), u.Machine, u.PublicAddress, strings.Join(u.OpenPorts, ","))
	}

	return t
}

// screenReason returns the reason for the unit's status. For a failed hook of a relation, it names the relation.
func screenReason(u status.Unit) reason {
	id, r := u.HeldByRelation()
	if id == "" {
		return unitReason(u, u.WorkloadInfo().Message)
	}

	why := relationUnitReason(r)
	why.text = id + ": " + why.text
	return why
}

// runningTable returns a table of the hooks that units are running.
func runningTable(s status.Status, now time.Time) *console.Table {
	t := console.NewTable("RUNNING", "UNIT", "SINCE", "HELD BY")
	t.Spare("HELD BY")
	addRunning(t, s, func(since time.Time) string { return formatAgo(since, now) })
	return t
}

// formatAgo returns how long ago a time was, or its date if it was not today and at least 12 hours ago. It
// returns "" for the zero time.
func formatAgo(since, now time.Time) string {
	since = since.Local()
	now = now.Local()
	ago := max(0, now.Sub(since))

	switch {
	case since.IsZero():
		return ""
	case ago < 12*time.Hour || since.Format(time.DateOnly) == now.Format(time.DateOnly):
		return formatAge(ago)
	case since.Year() == now.Year():
		return since.Format("Jan 2")
	}

	return since.Format(time.DateOnly)
}

// formatAge returns a duration in whole seconds, minutes or hours, such as "5m".
func formatAge(age time.Duration) string {
	switch {
	case age < time.Minute:
		return fmt.Sprintf("%ds", age/time.Second)
	case age < time.Hour:
		return fmt.Sprintf("%dm", age/time.Minute)
	}
	return fmt.Sprintf("%dh", age/time.Hour)
}

// machinesLine returns one line about all machines. It returns "" if there are none, or if one of them does not
// run, is not alive, or has a message.
func machinesLine(s status.Status) string {
	ids := slices.SortedFunc(maps.Keys(s.Machines), state.CompareIDs)
	for _, id := range ids {
		m := s.Machines[id]
		if m.State != state.MachineRunning || m.Life != "" || machineMessage(m) != "" {
			return ""
		}
	}

	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%s running: %s", formatCount(len(ids), "machine"), strings.Join(foldIDs(ids), ", "))
}

// foldIDs replaces three or more consecutive ids with a range, as in 1-3.
func foldIDs(ids []string) (folded []string) {
	for i := 0; i < len(ids); {
		end := i + 1
		for end < len(ids) && isNextID(ids[end-1], ids[end]) {
			end++
		}

		if end-i > 2 {
			folded = append(folded, ids[i]+"-"+ids[end-1])
			i = end
			continue
		}
		folded = append(folded, ids[i])
		i++
	}

	return folded
}

// isNextID reports whether both ids are numbers, and next is the number after id.
func isNextID(id, next string) bool {
	a, aerr := strconv.Atoi(id)
	b, berr := strconv.Atoi(next)
	return aerr == nil && berr == nil && b == a+1
}

// withoutPeers returns the status without peer relations, since operators do not add them. It keeps peer
// relations in error.
func withoutPeers(s status.Status) status.Status {
	related := maps.Clone(s.Relations)
	maps.DeleteFunc(related, func(_ string, r status.Relation) bool {
		isPeer := len(r.Services) == 1
		return isPeer && !status.IsErrorState(r.State())
	})
	s.Relations = related
	return s
}
