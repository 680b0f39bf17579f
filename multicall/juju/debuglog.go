package juju

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/logs"
	"bijou/state/status"
	"bijou/state/text"
)

type debugLogCmd struct {
	Of      []string `arg:"" optional:"" name:"unit or application" help:"Show only these, as with --unit."`
	Follow  bool     `short:"f" help:"Follow the log, as on a terminal."`
	Tail    tailFlag `help:"Follow the log; with a number, as in --tail 20, print the last lines and end."`
	NoTail  bool     `help:"End after the present lines, even on a terminal."`
	Replay  bool     `help:"Print all lines, even on a terminal."`
	Lines   *int     `short:"n" placeholder:"N" help:"Print the last N lines; 0 prints all. Default: all, or 10 while following."`
	Limit   *int     `placeholder:"N" help:"Print the last N lines and end."`
	Unit    []string `short:"u" sep:"none" placeholder:"NAME" help:"Show only this unit, application or machine (web/0, web, machine-0; unit-web-0 as in Juju), or those that match a pattern. Can be repeated."`
	Include []string `short:"i" sep:"none" placeholder:"NAME" help:"Show only this unit, application or machine; Juju's name of --unit."`
	Exclude []string `short:"x" sep:"none" placeholder:"NAME" help:"Hide this unit, application or machine, or those that match a pattern. Can be repeated."`
	Level   string   `short:"l" placeholder:"LEVEL" help:"Show lines of LEVEL and above: TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL."`
	Since   string   `placeholder:"TIME" help:"Show only lines that are newer: a duration (90s, 10m, 2h), or a time ('2026-02-28 17:00', '17:00:30', or RFC 3339)."`
	Format  string   `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Print as text, or as json (one object per line); default text."`
	UTC     bool     `name:"utc" help:"Show times in UTC."`
	Secrets bool     `name:"show-secrets" help:"Also show passwords and other secrets."`

	colourFlags  `embed:""`
	jujuLogFlags `embed:""`
}

// jujuLogFlags are options of Juju that have no effect in bijou.
type jujuLogFlags struct {
	Date       bool          `help:"Dates and milliseconds are always shown."`
	MS         bool          `name:"ms" help:"Dates and milliseconds are always shown."`
	Retry      bool          `hidden:"" help:"A store that goes away is always waited for."`
	RetryDelay time.Duration `hidden:"" help:"A store that goes away is always waited for."`

	IncludeModule []string `hidden:"" help:"There are no modules."`
	ExcludeModule []string `hidden:"" help:"There are no modules."`
	IncludeLabel  []string `hidden:"" aliases:"include-labels" help:"There are no labels."`
	ExcludeLabel  []string `hidden:"" aliases:"exclude-labels" help:"There are no labels."`
	Location      bool     `hidden:"" help:"There are no locations."`
	Firehose      bool     `hidden:"" help:"There is one model at a time."`
}

// noteIgnored prints a note for each given option that asks for something that bijou does not have, with the
// reason. --date and --ms need no note, since dates and milliseconds are always shown. Neither do --retry and
// --retry-delay, since the command waits by itself for a store that goes away while it follows the log.
func (f jujuLogFlags) noteIgnored(o *operator) {
	for _, ignored := range []struct {
		given     bool
		flag, why string
	}{
		{given: len(f.IncludeModule) > 0, flag: "include-module", why: "lines have a unit and a hook, but no module"},
		{given: len(f.ExcludeModule) > 0, flag: "exclude-module", why: "lines have a unit and a hook, but no module"},
		{given: len(f.IncludeLabel) > 0, flag: "include-label", why: "lines have no labels"},
		{given: len(f.ExcludeLabel) > 0, flag: "exclude-label", why: "lines have no labels"},
		{given: f.Location, flag: "location", why: "lines have a hook, but no source location"},
		{given: f.Firehose, flag: "firehose", why: "the command shows the log of one model; to choose a different model: -m"},
	} {
		if ignored.given {
			o.note("note: --%s has no effect: %s", ignored.flag, ignored.why)
		}
	}
}

// Run prints the selected lines of the log, sorted by time. If it follows the log, it then prints new lines until
// it is interrupted, or the reader of its output has closed the pipe.
func (c debugLogCmd) Run(o *operator) error {
	// From here on, Follow and Unit combine all flags and arguments of the same meaning, and names are patterns.
	c.Follow = c.follows(console.IsTerminal(o.streams.Out))
	c.Unit = logPatterns(slices.Concat(c.Unit, c.Include, c.Of))
	c.Exclude = logPatterns(c.Exclude)

	if c.maxLines() < 0 { // from a negative --lines, --limit or --tail
		return console.Usage(fmt.Errorf("cannot show %d lines", c.maxLines()))
	}
	since, err := parseSince(c.Since, time.Now())
	_, levelErr := logs.ParseLevel(c.Level)
	if err := errors.Join(err, levelErr, checkGlobs(c.Unit), checkGlobs(c.Exclude)); err != nil {
		return console.Usage(err)
	}

	if c.UTC {
		// A global change is safe, since this process only prints the log and exits.
		time.Local = time.UTC
	}
	c.noteIgnored(o)

	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()

	return o.openChosen(func(s *state.State) error {
		t := &logFollower{o: o, debugLogCmd: c, since: since, coloured: c.canColour(o.streams.Out)}
		f := follower{
			o:              o,
			state:          s,
			settleInterval: settleInterval,
			scopes:         []state.Scope{t.watchScope()},
			read:           t.readNew,
		}

		if c.Follow {
			return f.follow(ctx)
		}
		_, err := f.showOnce(ctx)
		return err
	})
}

// follows reports whether the command follows the log. --no-tail, --limit and --tail N end the command, and take
// precedence over --follow and --tail without a number. Without these options, the command follows the log if stdout is
// a terminal.
func (c debugLogCmd) follows(isTerminal bool) bool {
	switch {
	case c.NoTail || c.Limit != nil || c.Tail.lines != nil:
		return false
	case c.Follow || c.Tail.set:
		return true
	}

	return isTerminal
}

// maxLines returns how many of the existing lines the command prints, counted from the end, or 0 for all. Of
// several options, --limit comes first, then --lines, then --tail. Without them, it returns 10 while the command
// follows the log, unless --replay or --since is given. Run must have set c.Follow to the result of follows.
func (c debugLogCmd) maxLines() int {
	for _, lines := range []*int{c.Limit, c.Lines, c.Tail.lines} {
		if lines != nil {
			return *lines
		}
	}
	if c.Follow && !c.Replay && c.Since == "" {
		return 10
	}

	return 0
}

// logPatterns returns the patterns that match the logs of the named units, applications and machines.
func logPatterns(names []string) []string {
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = logPattern(name)
	}
	return patterns
}

// logPattern returns the pattern that matches the logs of a unit, machine or application: web/0, machine-0,
// or web/* for the application web. It also accepts Juju's tags, such as unit-web-0 and application-web, and
// the id of a machine.
func logPattern(name string) string {
	if unit, ok := strings.CutPrefix(name, "unit-"); ok {
		if at := strings.LastIndexByte(unit, '-'); at > 0 && charm.IsUnit(unit[:at]+"/"+unit[at+1:]) {
			return unit[:at] + "/" + unit[at+1:]
		}
	}

	id, hasMachinePrefix := strings.CutPrefix(name, "machine-")
	// An application can also have a name such as machine-agent.
	isMachine := hasMachinePrefix && (isMachineID(id) || strings.ContainsAny(id, wildcards))
	switch {
	case isMachineID(name):
		return "machine-" + name
	case isMachine || strings.Contains(name, "/"):
		return name
	}
	return strings.TrimPrefix(name, "application-") + "/*"
}

// wildcards are the characters that have a meaning in a pattern.
const wildcards = `*?[\`

// logFollower reads and prints the lines of the log that the command selects.
type logFollower struct {
	debugLogCmd
	o        *operator
	since    time.Time // zero for lines of any age
	coloured bool

	// printedEnds are the numbers of all logs' last lines at the last printing, by source. It is nil before that.
	printedEnds map[string]int64
}

// watchScope returns the scope that contains the selected logs. If a name has wildcards, that is the scope of
// all logs.
func (t *logFollower) watchScope() state.Scope {
	if strings.ContainsAny(strings.Join(t.Unit, ""), wildcards) {
		return logs.Watch()
	}
	return logs.Watch(t.Unit...)
}

// readNew reads the selected lines that have not been printed yet. The first call leaves out lines before t.since
// and, if there is a limit, all but the last lines. For patterns that match no log, it calls noteSilent, which
// warns or returns an error. print prints the lines, and records for the next call that they are printed. It must be
// called after the view has ended.
func (t *logFollower) readNew(v *state.View) (print func() error, err error) {
	filter := logs.Filter{Level: t.Level, After: t.printedEnds}
	isFirst := t.printedEnds == nil
	// Later calls read all selected lines after printedEnds.
	if isFirst {
		filter.Last = t.maxLines()
		filter.Since = t.since
	}

	included := status.NewGlobs(t.Unit)
	excluded := status.NewGlobs(t.Exclude)
	wants := func(source string) bool {
		return (len(included) == 0 || included.Match(source)) && !excluded.Match(source)
	}
	lines, ends, err := logs.ReadNew(v, filter, wants)
	if err != nil {
		return nil, err
	}

	// In the first call, ReadNew calls wants for each log, so included knows which patterns match none.
	if unmatched := included.Unmatched(t.Unit); isFirst && len(unmatched) > 0 {
		if err := t.noteSilent(v, unmatched); err != nil {
			return nil, err
		}
	}
	return func() error { return t.printLines(lines, ends) }, nil
}

// noteSilent warns that the patterns match no log. If one of them also matches no unit, application or machine,
// noteSilent returns an error instead. If the command follows the log, noteSilent adds a hint to the warning
// instead of returning the error, since a matching unit may be added later.
func (t *logFollower) noteSilent(v *state.View, patterns []string) error {
	units, unitsErr := listNames(v, "units")
	machines, machinesErr := listNames(v, "machines")
	services, servicesErr := listNames(v, "services")
	if err := errors.Join(unitsErr, machinesErr, servicesErr); err != nil {
		return err
	}

	// Match records which of the patterns have matched.
	globs := status.NewGlobs(patterns)
	for _, unit := range units {
		globs.Match(unit)
	}
	for _, id := range machines {
		globs.Match("machine-" + id)
	}
	for _, service := range services {
		globs.Match(service + "/*")
	}
	unknown := globs.Unmatched(patterns)

	// By default, the hint lists all units.
	hint := listHint("units", units)
	for _, pattern := range unknown {
		// The operator may have typed the name of a pod of Kubernetes.
		if unit := unitOfPod(strings.TrimSuffix(pattern, "/*")); slices.Contains(units, unit) {
			hint = "juju debug-log --include " + unit
		}
	}
	if len(unknown) > 0 && !t.Follow {
		return console.Hint(fmt.Errorf("no unit, application or machine matches %s", strings.Join(quoteAll(unknown), ", ")), hint)
	}

	t.o.note("warning: the log has no lines of %s", strings.Join(quoteAll(patterns), ", "))
	if len(unknown) > 0 {
		t.o.note("hint: %s", hint)
	}
	return nil
}

// printLines prints the lines, after a warning if lines were dropped. ends are the numbers of the last lines of all
// logs, by source; the next readNew reads the lines after them.
func (t *logFollower) printLines(lines []logs.Line, ends map[string]int64) error {
	t.noteDropped(lines, ends)

	var output []string
	for _, l := range lines {
		output = append(output, t.formatMessage(l)...)
	}
	// A message can have several lines of text, so the last n messages can have more than n lines. The limit
	// applies only to the first call, which has set no printedEnds yet.
	if n := t.maxLines(); n > 0 && t.printedEnds == nil {
		output = output[max(0, len(output)-n):]
	}
	t.printedEnds = ends

	out := bufio.NewWriter(t.o.streams.Out)
	for _, line := range output {
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// noteDropped warns of lines that the environment dropped before this command could read them. With --level
// it does nothing, since lines of lower levels were not read either, and the number of dropped lines is
// unknown.
func (t *logFollower) noteDropped(lines []logs.Line, ends map[string]int64) {
	// The first call leaves out old lines on purpose.
	if t.printedEnds == nil || t.Level != "" {
		return
	}

	read := map[string]int64{} // how many lines were read, by source
	for _, l := range lines {
		read[l.Source]++
	}

	// The ends are numbers that count all lines of a source, including dropped ones.
	for _, source := range slices.Sorted(maps.Keys(read)) {
		if lost := ends[source] - t.printedEnds[source] - read[source]; lost > 0 {
			t.o.note("warning: %s of %s came too fast and are not shown", formatCount(int(lost), "line"), source)
		}
	}
}

// formatMessage returns the lines to print for one message of the log: one for each line of the message, or a
// single line of JSON. Each line of text begins with the message's time, source and level, so that no line of
// a message looks like a different message. Without --show-secrets, formatMessage hides secrets in the message.
func (t *logFollower) formatMessage(l logs.Line) []string {
	if !t.Secrets {
		l.Message = text.HideSecrets(l.Message)
	}
	if t.Format == "json" {
		// Marshal cannot fail for these types.
		line, _ := json.Marshal(struct {
			Source string `json:"source"`
			logs.Line
		}{l.Source, l})
		return []string{text.EscapeJSON(string(line))}
	}

	prefix := fmt.Sprintf("%s %s ", l.Time.Local().Format(time.DateTime+".000"), l.Source)
	hook := ""
	if l.Hook != "" {
		hook = text.Escape(l.Hook + ": ")
	}

	lines := text.EscapeLines(l.Message)
	for i, line := range lines {
		lines[i] = text.Escape(prefix) + t.paint(text.Escape(l.Level)) + " " + hook + line
	}
	return lines
}

// paint returns the level in the colour of an error or a warning. It returns the level unchanged if it is lower, or if
// the output cannot have colours.
func (t *logFollower) paint(level string) string {
	switch {
	case !t.coloured:
		return level
	case level == "ERROR" || level == "CRITICAL":
		return console.Paint(console.Red, level)
	case level == "WARNING":
		return console.Paint(console.Yellow, level)
	}

	return level
}

// parseSince returns the time that text means: a duration before now, or a time. A time of day is a time of the
// current day. For an empty text, parseSince returns the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	// A negative duration would mean a time in the future, so it gets the error below.
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if text == "" {
		return time.Time{}, nil
	}

	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		// The text can be a whole time, or only a time of day.
		for _, day := range []string{"", now.Format(time.DateOnly) + " "} {
			if at, err := time.ParseInLocation(layout, day+text, now.Location()); err == nil {
				return at, nil
			}
		}
	}

	return time.Time{}, fmt.Errorf(
		"cannot read --since %q: want a duration (90s, 10m, 2h) or a time ('2026-02-28 17:00', '17:00:30', 2026-02-28T17:00:00Z)",
		text,
	)
}
