package juju

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// maxShownLines is how many of a unit's last log lines the text shows. juju debug-log shows more.
const maxShownLines = 5

// unitRest has the details of a unit that the text shows as YAML, below the state and the log lines.
type unitRest struct {
	Version      string                        `yaml:"workload-version,omitempty"`
	OpenedPorts  []string                      `yaml:"opened-ports,omitempty"`
	Principal    string                        `yaml:"subordinate-to,omitempty"`
	Subordinates []string                      `yaml:"subordinates,omitempty"`
	Options      map[string]any                `yaml:"options,omitempty"`
	Storage      map[string]state.StorageState `yaml:"storage,omitempty"`
	Secrets      map[string]string             `yaml:"secrets,omitempty"`
	Relations    []status.RelationDetail       `yaml:"relation-info,omitempty"`
}

// renderText renders each unit as text: its state with time, reason and advice, the last log lines of the unit or
// of its failed hook, and the other details.
func (c showUnitCmd) renderText(units map[string]shownUnit, coloured bool) ([]byte, error) {
	var b bytes.Buffer
	for i, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		if i > 0 {
			b.WriteString("\n")
		}

		u := units[name]
		u.writeState(&b, name, coloured)
		u.writeLines(&b, coloured)
		if err := u.writeRest(&b); err != nil {
			return nil, err
		}
	}

	return b.Bytes(), nil
}

// writeState writes the unit's title and state, the reason for the state, the advice for the operator, and what
// its agent does now and next.
func (u shownUnit) writeState(b *bytes.Buffer, name string, coloured bool) {
	title := name
	if u.Leader {
		title += " *"
	}
	title += " of " + u.Charm
	if u.Machine != "" {
		title += ", on machine " + u.Machine
	}
	if u.PublicAddress != "" {
		title += " (" + u.PublicAddress + ")"
	}
	fmt.Fprintln(b, text.Escape(title))

	word := u.view.Word()
	shown := text.Escape(status.WithLife(word, state.UnlessAlive(u.Life)))
	if colour := wordColour(word); coloured && colour != "" {
		shown = console.Paint(colour, shown)
	}

	writeField(b, "Status", shown+sinceText(u.view.Since()))
	writeField(b, "Why", text.Escape(screenReason(u.view).text))
	writeField(b, "Waits for", text.Escape(u.WaitsFor))
	writeList(b, "To do", u.ToDo)

	if u.Agent.Current != "idle" {
		agent := u.Agent.Current
		if u.Agent.Message != "" {
			agent += ", " + text.FirstLine(u.Agent.Message)
		}
		writeField(b, "Agent", text.Escape(agent)+sinceText(u.Agent.Since))
	}
	writeField(b, "Next", text.Escape(u.Next))
	writeList(b, "Queue", u.Queue)
}

// writeList writes each value on its own line, with the label before the first.
func writeList(b *bytes.Buffer, label string, values []string) {
	for _, value := range values {
		writeField(b, label, text.Escape(value))
		label = ""
	}
}

// writeField writes a line with the label and the value. It writes nothing for an empty value.
func writeField(b *bytes.Buffer, label, value string) {
	if value == "" {
		return
	}
	if label != "" {
		label += ":"
	}
	fmt.Fprintf(b, "%11s %s\n", label, value)
}

// sinceText returns text such as " since 2026-02-28 10:00:00 (5m ago)". It leaves out the part in parentheses
// if the time is more than a day ago. It returns "" for the zero time.
func sinceText(since time.Time) string {
	if since.IsZero() {
		return ""
	}

	ago := ""
	if age := max(0, time.Since(since)); age < 24*time.Hour {
		ago = " (" + formatAge(age) + " ago)"
	}
	return " since " + since.Local().Format(time.DateTime) + ago
}

// writeLines writes the last log lines of the hook whose failure stops the unit. If there is no such hook, or it has
// logged nothing, writeLines writes the unit's last log lines.
func (u shownUnit) writeLines(b *bytes.Buffer, coloured bool) {
	failed := u.LastFailed
	// u.Error can also describe a hook that has been running for very long, or a unit that is down.
	stopsUnit := failed != nil && u.Error != nil && failed.Hook == u.Error.Hook
	if stopsUnit && len(failed.Lines) > 0 {
		fmt.Fprintf(b, "\nThe last lines of %s:\n", text.Escape(failed.Hook))
		for _, line := range failed.Lines {
			fmt.Fprintln(b, "  "+text.Escape(line))
		}
		return
	}

	var lines []string
	t := logFollower{coloured: coloured}
	for _, l := range u.log {
		lines = append(lines, t.formatMessage(l)...)
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\nIts last lines:\n")
	}
	// One message can have several lines.
	for _, line := range lines[max(0, len(lines)-maxShownLines):] {
		fmt.Fprintln(b, "  "+line)
	}
}

// writeRest writes the table of hooks, and then the other details in YAML. It leaves out a part that is empty.
func (u shownUnit) writeRest(b *bytes.Buffer) error {
	const (
		coloured     = false
		naturalWidth = 0
		emptyMapping = "{}\n"
	)

	if len(u.Hooks) > 0 {
		b.WriteString("\n")
		if err := hooksTable(u.Hooks).WriteIn(b, coloured, naturalWidth); err != nil {
			return err
		}
	}

	details, err := text.MarshalYAML(unitRest{
		Version:      u.Version,
		OpenedPorts:  u.OpenedPorts,
		Principal:    u.Principal,
		Subordinates: u.Subordinates,
		Options:      u.Options,
		Storage:      u.Storage,
		Secrets:      u.Secrets,
		Relations:    u.Relations,
	})
	if err != nil {
		return err
	}
	if string(details) != emptyMapping {
		b.WriteString("\n" + string(details))
	}
	return nil
}

// hooksTable returns a table with a line for each run of a hook.
func hooksTable(runs []status.HookRun) *console.Table {
	t := console.NewTable("HOOK", "REMOTE", "STARTED", "TOOK", "FAILURE")
	t.Spare("REMOTE", "FAILURE")
	for _, r := range runs {
		took := time.Duration(r.Seconds * float64(time.Second))
		t.Add(console.Plain, r.Hook, r.Remote, r.Started.Local().Format(time.DateTime), formatTook(took), text.FirstLine(r.Failure))
	}
	return t
}

// formatTook returns a duration as text. It rounds to milliseconds below a second, to hundredths of a second below a
// minute, and otherwise to seconds.
func formatTook(took time.Duration) string {
	switch {
	case took < time.Second:
		return took.Round(time.Millisecond).String()
	case took < time.Minute:
		return took.Round(10 * time.Millisecond).String()
	}
	return took.Round(time.Second).String()
}
