package juju

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/sanitize"
)

// debugLogCmd is `juju debug-log`.
type debugLogCmd struct {
	Follow bool     `short:"f" help:"Go on printing what comes."`
	Unit   []string `short:"u" sep:"none" placeholder:"UNIT" help:"Only this unit (or machine-0), or those that a pattern matches ('wordpress/*'); may be repeated."`
	Level  string   `short:"l" placeholder:"LEVEL" help:"This level and those above: TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL."`
	Lines  *int     `short:"n" placeholder:"N" help:"The last N lines; 0 is all. Default: all, with --follow 10."`
}

// Help shows how it is used.
func (debugLogCmd) Help() string {
	return `Only the newest part of the log is kept in the environment; all that hooks print is in the unit's folder.
Where lines came faster than they could be shown, --follow says how many are missing.

Examples:
  juju debug-log
  juju debug-log -f --unit wordpress/0
  juju debug-log -f --unit 'wordpress/*' --unit machine-0
  juju debug-log --level WARNING -n 20`
}

// Run prints the lines by time and, with --follow, goes on until interrupted, or
// until nobody reads any more.
func (c debugLogCmd) Run(o *operator) error {
	if c.last() < 0 {
		return console.Usage(fmt.Errorf("cannot show %d lines", c.last()))
	}
	if err := checkGlobs(c.Unit); err != nil {
		return console.Usage(err)
	}
	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()
	return o.open(func(s *state.State) error {
		t := &tail{o: o, globs: c.Unit, level: strings.ToUpper(c.Level), last: c.last(), colour: console.Coloured(o.streams.Out)}
		f := follower{o: o, state: s, settle: settle, scopes: []state.Scope{t.scope()}, read: t.read}
		if c.Follow {
			return f.follow(ctx)
		}
		_, err := f.look(ctx)
		return err
	})
}

// last is how many lines are wanted; 0 is all.
func (c debugLogCmd) last() int {
	switch {
	case c.Lines != nil:
		return *c.Lines
	case c.Follow:
		return 10
	}
	return 0
}

// tail prints a log and what comes after.
type tail struct {
	o      *operator
	globs  []string // of units and machines; none: all
	level  string
	last   int // how many lines to begin with; 0: all
	colour bool

	ends map[string]int64 // how far each source's log was printed; nil at first
}

// scope is what is watched: the logs that are named, or all if one is a pattern.
func (t *tail) scope() state.Scope {
	if strings.ContainsAny(strings.Join(t.globs, ""), `*?[\`) {
		return state.WatchLogs()
	}
	return state.WatchLogs(t.globs...)
}

// read reads the lines that were not printed before.
func (t *tail) read(v *state.View) (print func() error, err error) {
	ends, err := v.LogEnds()
	if err != nil {
		return nil, err
	}
	filter := state.LogFilter{Level: t.level, After: t.ends, Sources: t.grown(ends)}
	if t.ends == nil {
		filter.Last = t.last
	}
	var lines []state.LogLine
	if t.ends == nil || len(filter.Sources) > 0 {
		if lines, err = v.Logs(filter); err != nil {
			return nil, err
		}
	}
	return func() error { return t.print(lines, ends) }, nil
}

// grown are the sources that are wanted and have lines that were not printed. If
// there is none at first, it is what was asked for: no source means all.
func (t *tail) grown(ends map[string]int64) (sources []string) {
	g := newGlobs(t.globs)
	for source, end := range ends {
		if end > t.ends[source] && (len(g) == 0 || g.match(source)) {
			sources = append(sources, source)
		}
	}
	if none := g.unmatched(t.globs); t.ends == nil && len(none) > 0 {
		t.o.note("warning: nothing has been logged by %s", strings.Join(quoted(none), ", "))
	}
	if t.ends == nil && len(sources) == 0 {
		return t.globs
	}
	slices.Sort(sources)
	return sources
}

// print prints the lines, and remembers how far the logs were.
func (t *tail) print(lines []state.LogLine, ends map[string]int64) error {
	t.miss(lines, ends)
	t.ends = ends
	out := bufio.NewWriter(t.o.streams.Out)
	for _, l := range lines {
		fmt.Fprintln(out, t.line(l))
	}
	return out.Flush()
}

// miss says how many lines were dropped from the environment before they could
// be read. With a level nobody can tell.
func (t *tail) miss(lines []state.LogLine, ends map[string]int64) {
	if t.ends == nil || t.level != "" {
		return
	}
	read := map[string]int64{}
	for _, l := range lines {
		read[l.Source]++
	}
	for _, source := range slices.Sorted(maps.Keys(read)) {
		if missing := ends[source] - t.ends[source] - read[source]; missing > 0 {
			t.o.note("warning: %s of %s came too fast to be shown", count(int(missing), "line"), source)
		}
	}
}

// line is one line as it is printed.
func (t *tail) line(l state.LogLine) string {
	text := fmt.Sprintf("%s %s %s %s", l.Time.Local().Format(time.DateTime+".000"), l.Source, l.Level, sanitize.Escape(hookPrefix(l.Hook)+l.Message))
	switch {
	case !t.colour:
		return text
	case l.Level == "ERROR" || l.Level == "CRITICAL":
		return console.Paint(console.Red, text)
	case l.Level == "WARNING":
		return console.Paint(console.Yellow, text)
	}
	return text
}

func hookPrefix(hook string) string {
	if hook == "" {
		return ""
	}
	return hook + ": "
}
