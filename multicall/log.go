package multicall

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	"bijou/state/sanitize"
)

// everything is the word of BIJOU_DEBUG for all parts, and for what belongs to none.
const everything = "all"

// logTo sends this process's log there. BIJOU_DEBUG=amp,store,uniter makes those
// parts talk at level debug: what a logger With("part", NAME) says. "all" makes
// all of them talk.
func logTo(w io.Writer) { slog.SetDefault(slogTo(w)) }

func slogTo(w io.Writer) *slog.Logger {
	inner := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hideSecrets})
	return slog.New(newLogHandler(inner, os.Getenv("BIJOU_DEBUG")))
}

// hideSecrets hides them in what is logged, errors among it.
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

// logHandler lets debug lines through of the parts that are to talk.
type logHandler struct {
	slog.Handler
	parts map[string]bool // that are to talk
	talks bool            // this one is
}

// newLogHandler takes the parts as BIJOU_DEBUG has them.
func newLogHandler(inner slog.Handler, parts string) logHandler {
	h := logHandler{Handler: inner, parts: map[string]bool{}}
	for _, part := range strings.Split(parts, ",") {
		h.parts[strings.TrimSpace(part)] = true
	}
	h.talks = h.parts[everything]
	return h
}

// Enabled is asked before anything is made of a line, so that silent parts cost
// nothing.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.talks
}

// WithAttrs learns which part a logger belongs to; the last word counts.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "part" {
			h.talks = h.parts[everything] || h.parts[a.Value.String()]
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
