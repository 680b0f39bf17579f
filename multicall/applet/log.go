package applet

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	"bijou/state/sanitize"
)

// allParts is the word of BIJOU_DEBUG for all parts, and for loggers without one.
const allParts = "all"

// SetLogOutput sends this process's log to w. BIJOU_DEBUG=amp,store,uniter enables debug
// lines of those parts, which loggers name by With("part", NAME); "all" enables all.
func SetLogOutput(w io.Writer) { slog.SetDefault(newLogger(w)) }

func newLogger(w io.Writer) *slog.Logger {
	inner := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hideSecrets})
	return slog.New(newLogHandler(inner, os.Getenv("BIJOU_DEBUG")))
}

func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	if k := a.Value.Kind(); k != slog.KindString && k != slog.KindAny {
		return a
	}
	text := a.Value.String()
	if hidden := sanitize.HideSecrets(text); hidden != text {
		a.Value = slog.StringValue(hidden)
	}
	return a
}

// logHandler lets debug lines of the enabled parts through.
type logHandler struct {
	slog.Handler
	parts map[string]bool // that are to talk
	debug bool            // this one is
}

func newLogHandler(inner slog.Handler, parts string) logHandler {
	h := logHandler{Handler: inner, parts: map[string]bool{}}
	for _, part := range strings.Split(parts, ",") {
		h.parts[strings.TrimSpace(part)] = true
	}
	h.debug = h.parts[allParts]
	return h
}

// Enabled is called before a line is formatted, so that disabled parts cost nothing.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.debug
}

// WithAttrs learns which part a logger belongs to; the last one counts.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "part" {
			h.debug = h.parts[allParts] || h.parts[a.Value.String()]
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup is the inner handler's.
func (h logHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
