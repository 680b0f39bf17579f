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

// writeFacts calls line for each fact of the status. It leaves out only the table of servers.
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
		line("leader", "waiting for the next leader: the previous one has handed over")
	default:
		line("leader", "none: no neco-updater runs")
	}

	d.writeConditions(line)
	d.writeUpdate(line)
	for _, f := range joinFindings(d.doc.Findings) {
		line("finding", "%s", f)
	}
	if hidden := d.doc.MoreFindings; hidden > 0 {
		line("finding", "and %d more; to see all findings of one server: neco diagnose LRN", hidden)
	}
}

// joinFindings returns a line for each finding, with the time when it was first seen, if that is known.
// Findings that are the same on several servers are one line, with the earliest of their times.
func joinFindings(findings []record.Finding) (lines []string) {
	type group struct {
		component, what string
		ill             bool
	}
	var order []group
	servers := map[group][]int{}
	since := map[group]time.Time{}
	for _, f := range findings {
		g := group{component: f.Component, what: f.What, ill: f.Ill}
		if len(servers[g]) == 0 {
			order = append(order, g)
		}
		servers[g] = append(servers[g], f.Server)
		since[g] = earlier(since[g], f.Since)
	}

	for _, g := range order {
		where := "server " + record.ListSomeServers(servers[g])
		if g.component != "" {
			where += ", " + g.component
		}
		if g.ill {
			where += " is ill"
		}

		line := where + ": " + g.what
		if first := since[g]; !first.IsZero() {
			line += "; since " + first.Format(time.RFC3339)
		}
		lines = append(lines, line)
	}

	return lines
}

// earlier returns the earlier of two times. A zero time is unknown, so earlier prefers the other time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// writeConditions calls line for each fault of the configuration, for a requested version, a pause and a
// failed check, and for each host that also claims a server's number.
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

// writeUpdate calls line for the current or last update, if there has been one.
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

// countSteps returns the number of steps of the update, from the last server whose worker has reported it. If no
// worker has reported it, it is the number of steps in this program's plan.
func (d statusText) countSteps() int {
	steps := d.steps
	for _, s := range d.doc.Servers {
		if s.Record != nil && s.Record.Steps > 0 {
			steps = s.Record.Steps
		}
	}
	return steps
}

// serverTable returns the table of servers. If the fleet is degraded, it shows when each server was last seen.
func (d statusText) serverTable() *console.Table {
	columns := []string{"SERVER", "WORKER", "STEPS", "AT", "STATE"}
	if d.doc.State == decide.Degraded {
		columns = append(columns, "SEEN")
	}

	table := console.NewTable(columns...)
	steps := d.countSteps()
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
	update := d.doc.Request
	isMissing := update != nil && slices.Contains(update.Missing, s.LRN)
	isDegraded := d.doc.State == decide.Degraded
	hasFinding := slices.ContainsFunc(d.doc.Findings, func(f record.Finding) bool { return f.Server == s.LRN })

	worker := s.Record
	switch {
	case worker != nil && worker.Error && len(worker.WaitedFor) > 0:
		// The server has failed because of a different server.
		return "failed: " + worker.Message, console.Yellow
	case worker != nil && worker.Error:
		return "failed: " + worker.Message, console.Red
	case isMissing:
		return "missing", console.Red
	case isDegraded && len(s.Ill) > 0:
		return "ill", console.Yellow
	case isDegraded && hasFinding:
		return "differs", console.Yellow
	case worker != nil && worker.Finished:
		return "done", console.Green
	case worker != nil && update != nil && update.Stop:
		return "stopped", console.Yellow
	case s.Doing != nil:
		return s.Doing.Text(), console.Plain
	case worker != nil:
		return "running", console.Plain
	case s.InUpdate:
		return "not started", console.Yellow
	case update != nil:
		return "registered later", console.Plain
	}

	return "", console.Plain
}

// stepBar returns a bar with one character for each step: "#" for a finished step, ">" for the current step,
// "!" for a failed step, and "." for a later step.
func stepBar(s serverDoc, steps int) string {
	worker := s.Record
	switch {
	case worker == nil:
		return strings.Repeat(".", steps)
	case worker.Finished:
		return strings.Repeat("#", max(steps, worker.Step))
	case worker.Step == 0 && !worker.Error:
		// The worker has not begun the first step.
		return strings.Repeat(".", steps)
	}

	sign := ">"
	if worker.Error {
		sign = "!"
	}
	// A worker that has failed before its first step has the number 0.
	at := max(worker.Step, 1)
	return strings.Repeat("#", at-1) + sign + strings.Repeat(".", max(0, steps-at))
}

// prefixIfSet returns the text after the prefix, or "" if the text is empty.
func prefixIfSet(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// formatSeen returns when the server was last seen.
func (d statusText) formatSeen(s serverDoc) string {
	switch {
	case s.Alive:
		return "now"
	case s.Seen == nil:
		return "never"
	}

	return formatDuration(d.now.Sub(*s.Seen)) + " ago"
}
