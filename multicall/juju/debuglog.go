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
	"bijou/state/status"
	"bijou/state/text"
)

type debugLogCmd struct {
	Follow  bool     `short:"f" help:"Go on printing what comes."`
	Unit    []string `short:"u" aliases:"include" sep:"none" placeholder:"UNIT" help:"Only this unit (or machine-0), or those that a pattern matches ('wordpress/*'); may be repeated."`
	Exclude []string `short:"x" sep:"none" placeholder:"UNIT" help:"Not this one, or those that a pattern matches; may be repeated."`
	Level   string   `short:"l" placeholder:"LEVEL" help:"This level and those above: TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL."`
	Lines   *int     `short:"n" aliases:"limit" placeholder:"N" help:"The last N lines; 0 is all. Default: all, with --follow 10."`
	Since   string   `placeholder:"TIME" help:"Not older: so long ago (90s, 10m, 2h), or a time ('2026-02-28 17:00', '17:00:30', or as RFC 3339 has it)."`
	Format  string   `enum:"text,json" default:"text" placeholder:"FORMAT" help:"text, or json (one object a line); default text."`
	Secrets bool     `name:"show-secrets" help:"Show passwords and other secrets, too."`
}

// Run prints the lines by time and, with --follow, goes on until interrupted, or until
// nobody reads any more.
func (c debugLogCmd) Run(o *operator) error {
	if c.maxLines() < 0 {
		return console.Usage(fmt.Errorf("cannot show %d lines", c.maxLines()))
	}
	since, err := parseSince(c.Since, time.Now())
	_, lerr := state.LogLevel(c.Level)
	if err := errors.Join(err, lerr, checkGlobs(c.Unit), checkGlobs(c.Exclude)); err != nil {
		return console.Usage(err)
	}

	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()

	return o.openChosen(func(s *state.State) error {
		t := &logFollower{o: o, debugLogCmd: c, since: since, coloured: console.CanColour(o.streams.Out)}
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

// maxLines is 0 for all.
func (c debugLogCmd) maxLines() int {
	switch {
	case c.Lines != nil:
		return *c.Lines
	case c.Follow:
		return 10
	}

	return 0
}

type logFollower struct {
	debugLogCmd
	o        *operator
	since    time.Time // zero: any
	coloured bool

	printedEnds map[string]int64 // how far each source's log was printed; nil at first
}

// watchScope covers the named logs, or all if one is a pattern.
func (t *logFollower) watchScope() state.Scope {
	if strings.ContainsAny(strings.Join(t.Unit, ""), `*?[\`) {
		return state.WatchLogs()
	}
	return state.WatchLogs(t.Unit...)
}

func (t *logFollower) readNew(v *state.View) (print func() error, err error) {
	filter := state.LogFilter{Level: t.Level, After: t.printedEnds}
	if t.printedEnds == nil {
		filter.Last, filter.Since = t.maxLines(), t.since
	}

	g := status.NewGlobs(t.Unit)
	x := status.NewGlobs(t.Exclude)
	wants := func(source string) bool { return (len(g) == 0 || g.Match(source)) && !x.Match(source) }
	lines, ends, err := v.NewLogs(filter, wants)
	if err != nil {
		return nil, err
	}

	if none := g.Unmatched(t.Unit); t.printedEnds == nil && len(none) > 0 {
		t.o.note("warning: nothing has been logged by %s", strings.Join(quoteAll(none), ", "))
	}
	return func() error { return t.printLines(lines, ends) }, nil
}

func (t *logFollower) printLines(lines []state.LogLine, ends map[string]int64) error {
	t.noteDropped(lines, ends)

	var text []string
	for _, l := range lines {
		text = append(text, t.formatMessage(l)...)
	}
	if n := t.maxLines(); n > 0 && t.printedEnds == nil {
		text = text[max(0, len(text)-n):] // the last messages may have more lines than were asked for
	}
	t.printedEnds = ends

	out := bufio.NewWriter(t.o.streams.Out)
	for _, line := range text {
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// noteDropped warns of lines that the environment dropped before they were read. With a
// level set the number cannot be known.
func (t *logFollower) noteDropped(lines []state.LogLine, ends map[string]int64) {
	if t.printedEnds == nil || t.Level != "" {
		return
	}

	read := map[string]int64{}
	for _, l := range lines {
		read[l.Source]++
	}

	for _, source := range slices.Sorted(maps.Keys(read)) {
		if missing := ends[source] - t.printedEnds[source] - read[source]; missing > 0 {
			t.o.note("warning: %s of %s came too fast to be shown", formatCount(int(missing), "line"), source)
		}
	}
}

// formatMessage returns a line for each line of the message. Every one of them begins with the
// message's own time, source and level, so that none passes for another message.
func (t *logFollower) formatMessage(l state.LogLine) []string {
	if !t.Secrets {
		l.Message = text.HideSecrets(l.Message)
	}
	if t.Format == "json" {
		line, _ := json.Marshal(struct { // never fails
			Source string `json:"source"`
			state.LogLine
		}{l.Source, l})
		return []string{text.EscapeJSON(string(line))}
	}

	head := fmt.Sprintf("%s %s %s ", l.Time.Local().Format(time.DateTime+".000"), l.Source, l.Level)
	if l.Hook != "" {
		head += l.Hook + ": "
	}

	lines := text.EscapeLines(l.Message)
	for i, line := range lines {
		lines[i] = t.paint(l.Level, text.Escape(head)+line)
	}
	return lines
}

func (t *logFollower) paint(level, line string) string {
	switch {
	case !t.coloured:
		return line
	case level == "ERROR" || level == "CRITICAL":
		return console.Paint(console.Red, line)
	case level == "WARNING":
		return console.Paint(console.Yellow, line)
	}

	return line
}

// parseSince accepts a duration before now, or a time; a time of day alone is today's.
func parseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if text == "" {
		return time.Time{}, nil
	}

	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		for _, day := range []string{"", now.Format(time.DateOnly) + " "} {
			if at, err := time.ParseInLocation(layout, day+text, now.Location()); err == nil {
				return at, nil
			}
		}
	}

	return time.Time{}, fmt.Errorf(
		"cannot read --since %q: want how long ago (90s, 10m, 2h) or a time ('2026-02-28 17:00', '17:00:30', 2026-02-28T17:00:00Z)",
		text,
	)
}
