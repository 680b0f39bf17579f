package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/state/text"
)

// prepareJujuLog declares the options of juju-log and juju-logger, which are the same tool.
func prepareJujuLog(f *hookenv.FlagSet) hookenv.Runner {
	l := &jujuLogger{}
	f.AddString(&l.level, "TRACE, DEBUG, INFO (the default), WARNING, ERROR or CRITICAL", "LEVEL", "l",
		"log-level")
	f.AddBool(&l.debug, "short for -l DEBUG", "debug")
	f.AddString(&l.format, "accepted and ignored", "FORMAT", "format")
	return l.run
}

// jujuLogger is one call of juju-log.
type jujuLogger struct {
	level, format string
	debug         bool
}

// run logs the arguments as one message. For an unknown level it first logs a warning, and then uses INFO.
func (l *jujuLogger) run(_ context.Context, inv *hookenv.Invocation) error {
	inv.DeprecateFormat(l.format)
	level, known := l.parseLevel()
	if !known {
		inv.WriteLog("WARNING", fmt.Sprintf("unknown log level %q: using INFO", l.level))
	}
	inv.WriteLog(level, text.EscapeInvalid(strings.Join(inv.Args, " ")))
	return nil
}

// parseLevel returns the level for the message. If the option is not a valid level, the level is INFO and known is
// false.
func (l *jujuLogger) parseLevel() (level string, known bool) {
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
