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
)

// statusTables is a status as tables. What is in trouble comes first in its table.
type statusTables struct {
	status    state.Status
	coloured  bool
	relations bool // every unit of every relation, instead of one line a relation
}

func (t statusTables) write(w io.Writer) error {
	related := relationTable
	if t.relations {
		related = relationUnitTable
	}
	var before string
	for _, table := range []*console.Table{provisionerTable(t.status), machineTable(t.status), serviceTable(t.status), unitTable(t.status), runningTable(t.status), related(t.status)} {
		if table.Empty() {
			continue
		}
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
		before = "\n"
		if err := table.Write(w, t.coloured); err != nil {
			return err
		}
	}
	return nil
}

// isErrorState tells if a state is one that an operator must see to.
func isErrorState(state string) bool { return strings.HasSuffix(state, "error") || state == "down" }

// stateColour is the colour of a row in that state.
func stateColour(state string) console.Colour {
	switch {
	case isErrorState(state):
		return console.Red
	case state == "pending" || state == "start":
		return console.Yellow
	}
	return ""
}

// compareErrorFirst orders what is in trouble before what is not, else by less.
func compareErrorFirst(a, b string, names int) int {
	switch {
	case isErrorState(a) && !isErrorState(b):
		return -1
	case isErrorState(b) && !isErrorState(a):
		return 1
	}
	return names
}

func machineTable(s state.Status) *console.Table {
	t := console.NewTable("MACHINE", "STATE", "ADDRESS", "INSTANCE", "SERIES", "MESSAGE")
	ids := slices.SortedFunc(maps.Keys(s.Machines), func(a, b string) int {
		return compareErrorFirst(string(s.Machines[a].State), string(s.Machines[b].State), compareNumbers(a, b))
	})
	for _, id := range ids {
		m := s.Machines[id]
		t.Add(stateColour(string(m.State)), id, withLife(string(m.State), m.Life), m.DNSName, m.InstanceID, m.Series, machineMessage(m))
	}
	return t
}

// machineMessage is why a machine's instance does not start and when that is tried
// again, or how far its start is.
func machineMessage(m state.MachineView) string {
	if m.Trouble != nil {
		return troubleMessage(*m.Trouble)
	}
	text := firstLine(cmp.Or(m.Error, m.Message))
	if !m.NextRetry.IsZero() {
		text += " (next retry at " + m.NextRetry.Local().Format(time.TimeOnly) + ")"
	}
	return text
}

// provisionerTable has a row for each thing that keeps the provisioner from its
// work.
func provisionerTable(s state.Status) *console.Table {
	t := console.NewTable("PROVISIONER", "SINCE", "MESSAGE")
	if s.Provisioner == nil {
		return t
	}
	for _, message := range s.Provisioner.Messages {
		if next := s.Provisioner.NextRetry; !next.IsZero() {
			message = firstLine(message) + " (next try at " + next.Local().Format(time.TimeOnly) + ")"
		}
		t.Add(console.Red, "trouble", s.Provisioner.Since.Local().Format(time.TimeOnly), firstLine(message))
	}
	return t
}

func serviceTable(s state.Status) *console.Table {
	t := console.NewTable("SERVICE", "VERSION", "CHARM", "EXPOSED", "UNITS", "STATUS", "MESSAGE")
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		sv := s.Services[name]
		exposed := "no"
		if sv.Exposed {
			exposed = "yes"
		}
		status := state.StatusView{}
		if sv.Status != nil {
			status = *sv.Status
		}
		t.Add("", name, firstLine(sv.Version), sv.Charm, exposed, strconv.Itoa(len(sv.Units)), withLife(status.Current, sv.Life), firstLine(status.Message))
	}
	return t
}

// allUnits are all units, by name.
func allUnits(s state.Status) map[string]state.UnitView {
	units := map[string]state.UnitView{}
	for _, sv := range s.Services {
		maps.Copy(units, sv.Units)
	}
	return units
}

func unitTable(s state.Status) *console.Table {
	units := allUnits(s)
	names := slices.SortedFunc(maps.Keys(units), func(a, b string) int {
		return compareErrorFirst(rowState(units[a]), rowState(units[b]), charm.CompareUnits(a, b))
	})
	t := console.NewTable("UNIT", "STATE", "WORKLOAD", "MACHINE", "ADDRESS", "PORTS", "MESSAGE")
	for _, name := range names {
		u := units[name]
		workload := state.StatusView{}
		if u.Workload != nil {
			workload = *u.Workload
		}
		if u.Leader {
			name += " *" // apart from the name, which scripts look for with a space behind it
		}
		t.Add(stateColour(rowState(u)), name, withLife(u.State, u.Life), cmp.Or(workload.Current, "-"), u.Machine, u.PublicAddress,
			strings.Join(u.OpenPorts, ","), unitMessage(u, workload.Message))
	}
	return t
}

// runningTable has a row for each unit that runs something.
func runningTable(s state.Status) *console.Table {
	units := allUnits(s)
	t := console.NewTable("RUNNING", "UNIT", "SINCE", "HELD BY")
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		if r := units[name].Running; r != nil {
			t.Add("", r.Name, name, r.Since.Local().Format(time.DateTime), r.Holder)
		}
	}
	return t
}

// unitMessage is why a unit is in error and when it is tried again, else what
// its charm says.
func unitMessage(u state.UnitView, workload string) string {
	if u.Trouble != nil {
		return troubleMessage(*u.Trouble)
	}
	i := u.Info
	if i == nil || i.Hook == "" && i.Message == "" {
		return firstLine(workload)
	}
	text := firstLine(strings.TrimPrefix(i.Hook+": "+i.Message, ": "))
	switch {
	case i.Resolved != "":
		text += " (marked as resolved)"
	case i.Interrupted:
		text += " (not retried by itself)"
	case u.Running != nil && i.Hook == u.Running.Name:
		text += " (runs again)"
	case !i.NextRetry.IsZero():
		text += " (next retry at " + i.NextRetry.Local().Format(time.TimeOnly) + ")"
	}
	return text + failureHint(i.Stderr, i.See)
}

// failureHint is what a failed hook has said last, and the command that tells more; empty
// if there is none.
func failureHint(stderr, see string) string {
	switch {
	case see == "":
		return ""
	case stderr != "":
		stderr = ": " + stderr
	}
	return stderr + "; see: " + see
}

// troubleMessage is what an agent cannot do, and when it tries again.
func troubleMessage(t state.Trouble) string {
	return fmt.Sprintf("%s (agent cannot go on since %s, next try at %s)", firstLine(t.Message),
		t.Since.Local().Format(time.TimeOnly), t.NextRetry.Local().Format(time.TimeOnly))
}

// rowState is the state by which a unit's row is coloured and put in its place.
func rowState(u state.UnitView) string {
	if u.Trouble != nil {
		return "error"
	}
	return u.State
}

// withLife adds that an entity is on its way out; an empty life is alive.
func withLife(text string, life state.Life) string {
	if life == "" {
		return text
	}
	return strings.TrimSpace(text + " (" + string(life) + ")")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// compareNumbers orders ids that are numbers as numbers.
func compareNumbers(a, b string) int {
	an, _ := strconv.Atoi(a)
	bn, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(a, b))
}
