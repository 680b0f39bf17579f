package hookenv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// jujuLog is juju-log, or its other name.
func jujuLog(name string) Tool {
	return Tool{
		Name:     name,
		Summary:  "write a message to the log",
		Usage:    "[-l LEVEL] [--debug] MSG...",
		Notes:    "It works without a hook too: the message goes to stderr then.",
		Examples: []string{name + " database created", name + " -l WARNING -- -x is not understood"},
		outside:  true,
		prepare: func(f *flagSet) runner {
			l := &logger{}
			f.string(&l.level, "TRACE, DEBUG, INFO (the default), WARNING, ERROR or CRITICAL", "LEVEL", "l", "log-level")
			f.bool(&l.debug, "short for -l DEBUG", "debug")
			f.string(&l.format, "accepted and ignored", "FORMAT", "format")
			return l.run
		},
	}
}

type logger struct {
	level, format string
	debug         bool
}

func (l *logger) run(_ context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("no message specified")
	}
	deprecateFormat(inv, l.format)
	level, known := l.word()
	if !known {
		inv.log("WARNING", fmt.Sprintf("unknown log level %q: using INFO", l.level))
	}
	inv.log(level, escaped(strings.Join(inv.args, " ")))
	return nil
}

// word is the level asked for, in the log's own words.
func (l *logger) word() (level string, known bool) {
	level = strings.ToUpper(l.level)
	switch {
	case l.debug:
		return "DEBUG", true
	case level == "":
		return "INFO", true
	case level == "WARN":
		return "WARNING", true
	}
	if slices.Contains([]string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}, level) {
		return level, true
	}
	return "INFO", false
}

// log writes to the unit's log, or to the caller's stderr without a hook.
func (inv *invocation) log(level, message string) {
	if inv.hook == nil {
		fmt.Fprintf(&inv.stderr, "%s %s\n", level, message)
		return
	}
	inv.hook.Log(level, message)
}

// escaped writes bytes that are not UTF-8 as \xNN: the log is text.
func escaped(message string) string {
	if utf8.ValidString(message) {
		return message
	}
	var b strings.Builder
	for message != "" {
		r, size := utf8.DecodeRuneInString(message)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, message[0])
		} else {
			b.WriteString(message[:size])
		}
		message = message[size:]
	}
	return b.String()
}
