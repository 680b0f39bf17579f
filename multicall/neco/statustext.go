package neco

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/text"
	"bijou/updater/decide"
	"bijou/updater/record"
)

// statusText prints the status for people.
type statusText struct {
	doc   statusDoc
	steps int // the number of steps in this program's plan, which applies unless a worker reports its own number
	now   time.Time
}

// render returns the status as text: a line for each fact, and then the table of servers.
func (d statusText) render(coloured bool) (string, error) {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, text.Escape(fmt.Sprintf(format, args...)))
	}
	d.writeFacts(line)
	table := d.serverTable()
	if table.Empty() {
		return b.String(), nil
	}

	b.WriteString("\n")
	err := table.Write(&b, coloured)
	return b.String(), err
}

// writeFacts writes everything except the table of servers.
func (d statusText) writeFacts(line func(name, format string, args ...any)) {
	firstHint := ""
	hints := d.doc.Hints
	if len(hints) > 0 {
		firstHint = hints[0]
		hints = hints[1:]
	}
	line("state", "%s%s%s", d.doc.State, prefixIfSet(": ", d.doc.Why), prefixIfSet("; ", firstHint))
	for _, hint := range hints {
		line("also", "%s", hint)
	}

	if d.doc.Cluster != "" {
		line("cluster", "%s", d.doc.Cluster)
	}
	line("version", "%s", cmp.Or(d.doc.Version, "none yet"))
	line("release", "%s", cmp.Or(d.doc.Release, "none known"))

	if d.doc.Replaced != "" {
		line("replaced", "%s", d.doc.Replaced)
	}
	for _, r := range d.doc.Refused {
		line("refused", "%s since %s: %s", r.Version, r.At.Format(time.RFC3339), r.Why)
	}

	if n := d.doc.NoRoom; n != nil {
		line("no space", "for %s since %s: %s", n.Version, n.At.Format(time.RFC3339), n.Why)
	}
	if w := d.doc.Withdrawn; w != nil {
		line("withdrawn", "%s, which servers run, has been missing from the published releases since %s", w.Version, w.At.Format(time.RFC3339))
	}

	switch l := d.doc.Leader; {
	case l != nil:
		line("leader", "process %d on %s, for %s", l.PID, l.Host, formatDuration(d.now.Sub(l.Since)))
	case !d.doc.LeaderDue.IsZero():
		line("leader", "waiting for a leader: the previous one has given up its place to another")
	default:
		line("leader", "none: no neco-updater runs")
	}

	d.writeConditions(line)
	d.writeUpdate(line)
	for _, f := range joinFindings(d.doc.Findings) {
		line("finding", "%s", f)
	}
	if hidden := d.doc.MoreFindings; hidden > 0 {
		line("finding", "and %d more; neco diagnose LRN shows those of one server", hidden)
	}
}

// joinFindings returns a line for each finding. It joins findings that are the same on several servers.
func joinFindings(all []record.Finding) (lines []string) {
	type about struct {
		component, what string
		ill             bool
	}
	var order []about
	servers := map[about][]int{}
	since := map[about]time.Time{}
	for _, f := range all {
		key := about{component: f.Component, what: f.What, ill: f.Ill}
		if len(servers[key]) == 0 {
			order = append(order, key)
			since[key] = f.Since
		}
		servers[key] = append(servers[key], f.Server)
		if first := since[key]; first.IsZero() || !f.Since.IsZero() && f.Since.Before(first) {
			since[key] = f.Since
		}
	}

	for _, key := range order {
		where := "server " + record.ListSomeServers(servers[key])
		if key.component != "" {
			where += ", " + key.component
		}
		if key.ill {
			where += " is ill"
		}
		line := where + ": " + key.what
		if first := since[key]; !first.IsZero() {
			line += "; since " + first.Format(time.RFC3339)
		}
		lines = append(lines, line)
	}

	return lines
}

// writeConditions writes a line for each condition that needs an operator's attention.
func (d statusText) writeConditions(line func(name, format string, args ...any)) {
	for _, fault := range d.doc.ConfigFaults {
		line("config", "cannot read %s", fault)
	}
	if t := d.doc.Target; t != nil {
		line("requested", "%s", t.Version)
	}

	if p := d.doc.Pause; p != nil && p.IsOn(d.now) {
		until := "until neco resume"
		if p.Until != nil {
			until = "until " + p.Until.Format(time.RFC3339)
		}
		line("paused", "%s%s", until, prefixIfSet(": ", p.Why))
	}

	if f := d.doc.CheckFail; f != nil {
		since := ""
		if f.Tries > 1 {
			since = fmt.Sprintf(", %d times since %s", f.Tries, f.Since.Format(time.RFC3339))
		}
		line("check", "failed at %s%s: %s", f.At.Format(time.RFC3339), since, f.Message)
	}

	for _, s := range d.doc.Servers {
		if t := s.Twin; t != nil {
			line("twin", "of server %d: %s, which has done nothing since %s", s.LRN, t, t.At.Format(time.RFC3339))
		}
	}
}

// writeUpdate writes the line for the current update, or nothing if there is no update.
func (d statusText) writeUpdate(line func(name, format string, args ...any)) {
	r := d.doc.Request
	if r == nil {
		return
	}

	end := "running"
	switch {
	case r.Stop:
		end = "stopped"
	case r.Ended():
		end = "succeeded"
	}

	until := d.now
	if r.EndedAt != nil {
		until = *r.EndedAt
	}

	line("update", "%d to %s on servers %s, attempt %d: %s after %s", r.ID, r.Version,
		record.ListServers(r.Servers), r.Attempt, end, formatDuration(until.Sub(r.StartedAt)))
	if len(r.Missing) > 0 {
		line("missing", "no worker is alive on server %s", record.ListServers(r.Missing))
	}
}

// serverTable returns the table of servers. If the fleet is degraded, it shows when each server was last seen.
func (d statusText) serverTable() *console.Table {
	columns := []string{"SERVER", "WORKER", "STEPS", "AT", "STATE"}
	if d.doc.State == decide.Degraded {
		columns = append(columns, "SEEN")
	}

	table := console.NewTable(columns...)
	steps := d.steps
	for _, s := range d.doc.Servers {
		if s.Record != nil && s.Record.Steps > 0 {
			steps = s.Record.Steps
		}
	}

	for _, s := range d.doc.Servers {
		word, colour := d.serverState(s)
		at := ""
		if s.Record != nil && !s.Record.Finished {
			at = fmt.Sprintf("%d %s", s.Record.Step, s.Record.StepName)
		}

		worker := s.Worker
		if !s.Alive {
			worker = "not alive"
		}
		row := []string{fmt.Sprint(s.LRN), worker, stepBar(s, steps), at, word}
		if d.doc.State == decide.Degraded {
			row = append(row, d.formatSeen(s))
		}
		table.Add(colour, row...)
	}

	return table
}

// serverState returns the word for a server's state, and its colour. It uses the first case that applies:
// failures, then findings, then progress.
func (d statusText) serverState(s serverDoc) (string, console.Colour) {
	missing := d.doc.Request != nil && slices.Contains(d.doc.Request.Missing, s.LRN)

	w := s.Record
	switch {
	case w != nil && w.Error && len(w.WaitedFor) > 0:
		// The server has failed because of a different server.
		return "failed: " + w.Message, console.Yellow
	case w != nil && w.Error:
		return "failed: " + w.Message, console.Red
	case missing:
		return "missing", console.Red
	case d.doc.State == decide.Degraded && len(s.Ill) > 0:
		return "ill", console.Yellow
	case d.doc.State == decide.Degraded && slices.ContainsFunc(d.doc.Findings, func(f record.Finding) bool { return f.Server == s.LRN }):
		return "differs", console.Yellow
	case w != nil && w.Finished:
		return "done", console.Green
	case w != nil && d.doc.Request != nil && d.doc.Request.Stop:
		return "stopped", console.Yellow
	case s.Doing != nil:
		return s.Doing.Text(), console.Plain
	case w != nil:
		return "running", console.Plain
	case s.InUpdate:
		return "not started", console.Yellow
	case !s.InUpdate && d.doc.Request != nil:
		return "registered later", console.Plain
	}

	return "", console.Plain
}

// stepBar returns a bar with one character for each step.
func stepBar(s serverDoc, steps int) string {
	w := s.Record
	switch {
	case w == nil:
		return strings.Repeat(".", steps)
	case w.Finished:
		return strings.Repeat("#", max(steps, w.Step))
	}

	at := max(w.Step, 1)
	sign := ">"
	if w.Error {
		sign = "!"
	}
	if w.Step == 0 && !w.Error {
		return strings.Repeat(".", steps)
	}

	return strings.Repeat("#", at-1) + sign + strings.Repeat(".", max(0, steps-at))
}

func prefixIfSet(what, text string) string {
	if text == "" {
		return ""
	}
	return what + text
}

func (d statusText) formatSeen(s serverDoc) string {
	switch {
	case s.Alive:
		return "now"
	case s.Seen == nil:
		return "never"
	}

	return formatDuration(d.now.Sub(*s.Seen)) + " ago"
}
