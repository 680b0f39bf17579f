package juju

import (
	"cmp"
	"fmt"
	"io"
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

// statusTables is the screen of juju status, in its default format.
type statusTables struct {
	status    status.Status
	now       time.Time
	wide      bool // all columns, and a row for each machine and each relation
	coloured  bool
	width     int  // the terminal's width, or 0 if nothing is cut
	relations bool // each unit in each relation, instead of one line per relation
	storage   bool
	heading   []string // environment, version, time and store; without a heading there are no notes either
}

// write writes the tables that are not empty, with blank lines between them, and then the notes if there is a
// heading.
func (t statusTables) write(w io.Writer) error {
	separator := ""
	parts := t.parts()

	for _, part := range parts {
		if part.Empty() {
			continue
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}

		separator = "\n"
		if err := part.WriteIn(w, t.coloured, t.width); err != nil {
			return err
		}
	}

	if t.heading == nil {
		return nil
	}

	if notes := t.notes(parts); len(notes) > 0 {
		_, err := io.WriteString(w, "\n"+strings.Join(notes, "\n")+"\n")
		return err
	}
	return nil
}

// notes returns the lines that explain the tables: the star of leaders, and columns that have no space.
func (t statusTables) notes(parts []statusPart) (notes []string) {
	for _, u := range allUnits(t.status) {
		if u.Leader {
			notes = append(notes, "* leads its application")
			break
		}
	}

	for _, part := range parts {
		if table, ok := part.(*console.Table); ok {
			if out := table.LeftOut(t.width); len(out) > 0 {
				notes = append(notes, "no space for "+strings.Join(out, ", ")+"; to see everything: juju status --wide")
			}
		}
	}

	// Several tables can have no space for the same columns.
	slices.Sort(notes)
	return slices.Compact(notes)
}

// parts returns the parts of the screen, with the most important ones first. Some parts can be empty.
func (t statusTables) parts() (parts []statusPart) {
	heading := console.NewTable("MODEL", "VERSION", "TIME", "STORE")
	if t.heading != nil {
		heading.Add(console.Plain, t.heading...)
	}
	parts = append(parts, heading, provisionerTable(t.status))

	// With nil, the table of machines has no columns for units and constraints.
	if t.wide {
		parts = append(parts, serviceTable(t.status), wideUnitTable(t.status),
			wideRunningTable(t.status), machineTable(t.status, nil))
	} else {
		parts = append(parts, applicationTable(t.status), unitTable(t.status, t.now),
			runningTable(t.status, t.now), t.machines())
	}

	switch {
	case t.relations:
		parts = append(parts, relationUnitTable(t.status))
	case t.wide:
		parts = append(parts, relationTable(t.status))
	default:
		parts = append(parts, relationTable(withoutPeers(t.status)))
	}

	if t.storage {
		parts = append(parts, storageTable(t.status.Storage))
	}
	return parts
}

// statusPart is a table of the screen, or a line that replaces a table.
type statusPart interface {
	Empty() bool
	WriteIn(w io.Writer, coloured bool, width int) error
}

// machines returns the line of machinesLine or, if that is empty, the table of machines.
func (t statusTables) machines() statusPart {
	if line := machinesLine(t.status); line != "" {
		return statusLine(line)
	}

	// With nil, the table has no columns for units and constraints.
	table := machineTable(t.status, nil)
	// These columns can be left out, if they are empty or for lack of space.
	table.Spare("ADDRESS", "INSTANCE", "SERIES", "MESSAGE")
	return table
}

// statusLine is a line that replaces a table.
type statusLine string

// Empty reports whether there is no line.
func (l statusLine) Empty() bool { return l == "" }

// WriteIn writes the line, cut to the width unless that is 0. A line has no colours.
func (l statusLine) WriteIn(w io.Writer, _ bool, width int) error {
	text := string(l) + "\n"
	if width > 0 {
		// Fit needs one row for the line, and one for the cursor after it.
		text = console.Fit(text, console.Size{Width: width, Height: 2})
	}
	_, err := io.WriteString(w, text)
	return err
}

// stateColour returns the colour of an entity's state: red for an error, yellow for a state that should pass, and
// none for all others.
func stateColour(state string) console.Colour {
	switch {
	case status.IsErrorState(state):
		return console.Red
	case slices.Contains([]string{"pending", "start", "blocked", "waiting", "maintenance"}, state):
		return console.Yellow
	}

	return console.Plain
}

// compareErrorFirst compares the states a and b of two entities, so that errors come first. If both are
// errors, or neither is one, it returns byName, the result of comparing the entities' names.
func compareErrorFirst(a, b string, byName int) int {
	switch {
	case status.IsErrorState(a) && !status.IsErrorState(b):
		return -1
	case status.IsErrorState(b) && !status.IsErrorState(a):
		return 1
	}

	return byName
}

// machineTable returns the table of machines, with machines in error first. If entries is not nil, the table has
// columns for units and constraints.
func machineTable(s status.Status, entries map[string]machineEntry) *console.Table {
	columns := []string{"MACHINE", "STATE", "ADDRESS", "INSTANCE", "SERIES"}
	if entries != nil {
		columns = append(columns, "UNITS", "CONSTRAINTS")
	}
	t := console.NewTable(append(columns, "MESSAGE")...)
	t.PaintOnly("STATE")

	ids := slices.SortedFunc(maps.Keys(s.Machines), func(a, b string) int {
		return compareErrorFirst(string(s.Machines[a].State), string(s.Machines[b].State), state.CompareIDs(a, b))
	})

	for _, id := range ids {
		m := s.Machines[id]
		cells := []string{id, status.WithLife(string(m.State), m.Life), m.DNSName, m.InstanceID, m.Series}
		if entries != nil {
			cells = append(cells, strconv.Itoa(len(entries[id].Units)), m.Constraints)
		}
		addRow(t, string(m.State), reason{text: machineMessage(m)}, cells...)
	}

	return t
}

// machineMessage returns the trouble of the machine's agent or, without trouble, the machine's error or other
// message, with the time of the next attempt to start it. Without a message, it says if a machine of a confined
// environment does not use a gateway yet. It returns "" if there is nothing to say about the machine.
func machineMessage(m status.Machine) string {
	if m.Trouble != nil {
		return troubleMessage(*m.Trouble)
	}

	shown := text.FirstLine(cmp.Or(m.Error, m.Message))
	if !m.NextRetry.IsZero() {
		shown += retryText(m.NextRetry)
	}
	if shown == "" && m.AwaitsConfinement() {
		shown = "not confined before its next start"
	}
	return shown
}

// retryText returns when the retry is due. If the time has passed, the text says that other hooks run first.
func retryText(next time.Time) string {
	if next.Before(time.Now()) {
		return " (waits for its turn to be retried)"
	}
	return " (next retry at " + next.Local().Format(time.TimeOnly) + ")"
}

// provisionerTable returns a table with a row for each obstacle of the provisioner.
func provisionerTable(s status.Status) *console.Table {
	t := console.NewTable("PROVISIONER", "SINCE", "MESSAGE")
	t.PaintOnly("PROVISIONER")
	if s.Provisioner == nil {
		return t
	}

	for _, message := range s.Provisioner.Messages {
		if next := s.Provisioner.NextRetry; !next.IsZero() {
			message = text.FirstLine(message) + " (next try at " + next.Local().Format(time.TimeOnly) + ")"
		}
		t.AddWhole(console.Red, console.NoTail,
			"trouble", s.Provisioner.Since.Local().Format(time.TimeOnly), text.FirstLine(message))
	}

	return t
}

// allUnits returns the units of all services, by name.
func allUnits(s status.Status) map[string]status.Unit {
	units := map[string]status.Unit{}
	for _, service := range s.Services {
		maps.Copy(units, service.Units)
	}
	return units
}

// wideRunningTable is like runningTable, with the whole time at which each hook has started.
func wideRunningTable(s status.Status) *console.Table {
	t := console.NewTable("RUNNING", "UNIT", "SINCE", "HELD BY")
	addRunning(t, s, func(since time.Time) string { return since.Local().Format(time.DateTime) })
	return t
}

// addRunning adds a row for each unit that is running a hook. format formats the time at which the hook has
// started.
func addRunning(t *console.Table, s status.Status, format func(since time.Time) string) {
	units := allUnits(s)
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		if r := units[name].Running; r != nil {
			t.Add(console.Plain, r.Name, name, format(r.Since), r.Holder)
		}
	}
}

// reason is the reason for a state. see is the command that shows more, or empty.
type reason struct{ text, see string }

// seeAlso returns the end of a message that names the command, or "" without a command.
func (r reason) seeAlso() string {
	if r.see == "" {
		return ""
	}
	return "; see: " + r.see
}

// String returns the reason with the command that shows more.
func (r reason) String() string { return r.text + r.seeAlso() }

// failureReason returns the reason for a failed hook, with the command see that shows more. lastLine is the
// hook's last line of output. The reason includes lastLine if there is such a command.
func failureReason(shown, lastLine, see string) reason {
	if see != "" && lastLine != "" {
		shown += ": " + lastLine
	}
	return reason{shown, see}
}

// unitMessage returns the text of unitReason, with the command that shows more.
func unitMessage(u status.Unit, workload string) string { return unitReason(u, workload).String() }

// unitReason returns the reason to show for a unit: the trouble of its agent or, without trouble, the hook and
// message of u.Info and whether the hook is retried. Without either of them, the reason is workload, the message
// of the workload's status.
func unitReason(u status.Unit, workload string) reason {
	if u.Trouble != nil {
		return reason{text: troubleMessage(*u.Trouble)}
	}

	info := u.Info
	if info == nil || info.Hook == "" && info.Message == "" {
		return reason{text: text.FirstLine(workload)}
	}

	// Without a hook, only the message is shown.
	shown := text.FirstLine(strings.TrimPrefix(info.Hook+": "+info.Message, ": "))
	switch {
	case info.Resolved != "":
		shown += " (marked as resolved)"
	case info.Interrupted:
		shown += " (not retried automatically)"
	case u.Running != nil && info.Hook == u.Running.Name:
		shown += " (runs again)"
	case !info.NextRetry.IsZero():
		shown += retryText(info.NextRetry)
	}

	return failureReason(shown, cmp.Or(info.Stderr, info.Logged), info.See)
}

// troubleMessage returns why an agent is blocked, since when, and when it tries again.
func troubleMessage(t state.Trouble) string {
	return fmt.Sprintf("%s (agent blocked since %s, next try at %s)", text.FirstLine(t.Message),
		t.Since.Local().Format(time.TimeOnly), t.NextRetry.Local().Format(time.TimeOnly))
}

// rowState returns the state by which a unit's row is coloured and sorted.
func rowState(u status.Unit) string {
	if u.Trouble != nil {
		return "error"
	}
	return u.State
}
