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

type statusTables struct {
	status    status.Status
	coloured  bool
	width     int  // the terminal's; 0: nothing is cut
	relations bool // every unit of every relation, instead of one line a relation
	storage   bool
	heading   []string // environment, version, time and store; none: there is no note on stars either
}

func (t statusTables) write(w io.Writer) error {
	related := relationTable
	if t.relations {
		related = relationUnitTable
	}
	top := console.NewTable("ENVIRONMENT", "VERSION", "TIME", "STORE")
	if t.heading != nil {
		top.Add("", t.heading...)
	}

	tables := []*console.Table{top, provisionerTable(t.status), machineTable(t.status, nil), serviceTable(t.status), unitTable(t.status), runningTable(t.status), related(t.status)}
	if t.storage {
		tables = append(tables, storageTable(t.status.Storage))
	}
	var before string

	for _, table := range tables {
		if table.Empty() {
			continue
		}
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}

		before = "\n"
		if err := table.WriteIn(w, t.coloured, t.width); err != nil {
			return err
		}
	}

	leads := func(u status.Unit) bool { return u.Leader }
	if t.heading != nil && slices.ContainsFunc(slices.Collect(maps.Values(allUnits(t.status))), leads) {
		_, err := io.WriteString(w, "\n* leads its service\n")
		return err
	}

	return nil
}

// isErrorState reports whether an operator must see to a state.
func isErrorState(state string) bool { return strings.HasSuffix(state, "error") || state == "down" }

func stateColour(state string) console.Colour {
	switch {
	case isErrorState(state):
		return console.Red
	case slices.Contains([]string{"pending", "start", "blocked", "waiting", "maintenance"}, state):
		return console.Yellow
	}

	return ""
}

func compareErrorFirst(a, b string, names int) int {
	switch {
	case isErrorState(a) && !isErrorState(b):
		return -1
	case isErrorState(b) && !isErrorState(a):
		return 1
	}

	return names
}

// machineTable has columns for units and constraints if entries are given.
func machineTable(s status.Status, entries map[string]machineEntry) *console.Table {
	more := []string{"MESSAGE"}
	if entries != nil {
		more = []string{"UNITS", "CONSTRAINTS", "MESSAGE"}
	}
	t := console.NewTable(append([]string{"MACHINE", "STATE", "ADDRESS", "INSTANCE", "SERIES"}, more...)...)
	ids := slices.SortedFunc(maps.Keys(s.Machines), func(a, b string) int {
		return compareErrorFirst(string(s.Machines[a].State), string(s.Machines[b].State), state.CompareIDs(a, b))
	})

	for _, id := range ids {
		m := s.Machines[id]
		cells := []string{id, status.WithLife(string(m.State), m.Life), m.DNSName, m.InstanceID, m.Series}
		if entries != nil {
			cells = append(cells, strconv.Itoa(len(entries[id].Units)), m.Constraints)
		}
		t.Add(stateColour(string(m.State)), append(cells, machineMessage(m))...)
	}

	return t
}

func machineMessage(m status.Machine) string {
	if m.Trouble != nil {
		return troubleMessage(*m.Trouble)
	}

	shown := text.FirstLine(cmp.Or(m.Error, m.Message))
	if !m.NextRetry.IsZero() {
		shown += retryText(m.NextRetry)
	}
	return shown
}

// retryText says so of a time that has passed: other hooks run first.
func retryText(next time.Time) string {
	if next.Before(time.Now()) {
		return " (waits for its turn to be retried)"
	}
	return " (next retry at " + next.Local().Format(time.TimeOnly) + ")"
}

// provisionerTable has a row for each thing that keeps the provisioner from its work.
func provisionerTable(s status.Status) *console.Table {
	t := console.NewTable("PROVISIONER", "SINCE", "MESSAGE")
	if s.Provisioner == nil {
		return t
	}

	for _, message := range s.Provisioner.Messages {
		if next := s.Provisioner.NextRetry; !next.IsZero() {
			message = text.FirstLine(message) + " (next try at " + next.Local().Format(time.TimeOnly) + ")"
		}
		t.Add(console.Red, "trouble", s.Provisioner.Since.Local().Format(time.TimeOnly), text.FirstLine(message))
	}

	return t
}

func serviceTable(s status.Status) *console.Table {
	t := console.NewTable("SERVICE", "VERSION", "CHARM", "EXPOSED", "UNITS", "STATUS", "MESSAGE")
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		sv := s.Services[name]
		exposed := map[bool]string{true: "yes", false: "no"}[sv.Exposed]
		said := sv.StatusInfo()
		t.Add(stateColour(said.Current), name, text.FirstLine(sv.Version), sv.Charm, exposed,
			strconv.Itoa(len(sv.Units)), status.WithLife(said.Current, sv.Life), text.FirstLine(said.Message))
	}

	return t
}

func allUnits(s status.Status) map[string]status.Unit {
	units := map[string]status.Unit{}
	for _, sv := range s.Services {
		maps.Copy(units, sv.Units)
	}
	return units
}

func unitTable(s status.Status) *console.Table {
	units := allUnits(s)
	names := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return compareErrorFirst(rowState(units[a]), rowState(units[b]), charm.CompareUnits(a, b))
	})
	t := console.NewTable("UNIT", "STATE", "WORKLOAD", "AGENT", "MACHINE", "ADDRESS", "PORTS", "SINCE", "MESSAGE")

	for _, name := range names {
		u := units[name]
		workload := cmp.Or(u.Workload, &status.Workload{})
		if u.Leader {
			name += " *" // apart from the name, which scripts look for with a space behind it
		}

		t.Add(cmp.Or(
			stateColour(rowState(u)),
			stateColour(workload.Current),
		), name, status.WithLife(u.State, u.Life), cmp.Or(workload.Current,
			"-"), u.AgentInfo().Current, u.Machine, u.PublicAddress,
			strings.Join(u.OpenPorts, ","), formatSince(u), unitMessage(u, workload.Message))
	}

	return t
}

// formatSince is since when it is as a unit's message says: a time, or a day before.
func formatSince(u status.Unit) string {
	trouble := cmp.Or(u.Trouble, &state.Trouble{})
	info := cmp.Or(u.Info, &status.UnitStateInfo{})
	said := cmp.Or(u.Workload, &status.Workload{})
	since := cmp.Or(trouble.Since, info.Since, said.Since)
	switch {
	case since.IsZero():
		return ""
	case time.Since(since) < 12*time.Hour:
		return since.Local().Format("15:04")
	}

	return since.Local().Format("Jan 2")
}

func runningTable(s status.Status) *console.Table {
	units := allUnits(s)
	t := console.NewTable("RUNNING", "UNIT", "SINCE", "HELD BY")
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		if r := units[name].Running; r != nil {
			t.Add("", r.Name, name, r.Since.Local().Format(time.DateTime), r.Holder)
		}
	}

	return t
}

// unitMessage prefers an error and its next retry over what the charm reports.
func unitMessage(u status.Unit, workload string) string {
	if u.Trouble != nil {
		return troubleMessage(*u.Trouble)
	}

	i := u.Info
	if i == nil || i.Hook == "" && i.Message == "" {
		return text.FirstLine(workload)
	}

	shown := text.FirstLine(strings.TrimPrefix(i.Hook+": "+i.Message, ": "))
	switch {
	case i.Resolved != "":
		shown += " (marked as resolved)"
	case i.Interrupted:
		shown += " (not retried by itself)"
	case u.Running != nil && i.Hook == u.Running.Name:
		shown += " (runs again)"
	case !i.NextRetry.IsZero():
		shown += retryText(i.NextRetry)
	}

	return shown + failureHint(cmp.Or(i.Stderr, i.Logged), i.See)
}

func failureHint(said, see string) string {
	switch {
	case see == "":
		return ""
	case said != "":
		said = ": " + said
	}

	return said + "; see: " + see
}

func troubleMessage(t state.Trouble) string {
	return fmt.Sprintf("%s (agent cannot go on since %s, next try at %s)", text.FirstLine(t.Message),
		t.Since.Local().Format(time.TimeOnly), t.NextRetry.Local().Format(time.TimeOnly))
}

// rowState is the state that colours and sorts a unit's row.
func rowState(u status.Unit) string {
	if u.Trouble != nil {
		return "error"
	}
	return u.State
}
