package applet

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogHandler(t *testing.T) {
	tests := []struct{ parts, want string }{
		{"", "I I I "},
		{"amp", "I I I amp "},
		{"amp, store", "I I store I amp "},
		{"all", "I D I store I amp "},
		{"nosuch,", "I I I "},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		inner := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: messageOnly})
		log := slog.New(newLogHandler(inner, tt.parts))
		talk := func(log *slog.Logger, debug string) {
			log.Info("I")
			log.Debug(debug)
		}
		talk(log, "D")
		talk(log.With("part", "store"), "store")
		talk(log.With("part", "store").With("unit", "a/0").WithGroup("g").With("part", "amp"), "amp")
		got := string(bytes.ReplaceAll(bytes.ReplaceAll(out.Bytes(), []byte("msg="), nil), []byte("\n"), []byte(" ")))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.parts, diff)
		}
	}
}

// messageOnly removes all attributes except the message.
func messageOnly(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.MessageKey {
		return a
	}
	return slog.Attr{}
}

// TestSilentPartsAreNotEnabled checks that the log of a silent part is disabled, so that no time is spent on
// its lines.
func TestSilentPartsAreNotEnabled(t *testing.T) {
	log := slog.New(newLogHandler(slog.NewTextHandler(io.Discard, nil), "store")).With("part", "amp")
	if log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("a part that is to be silent is asked to talk")
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out)
	log.Error("cannot go on with password=s3cr3t", "error", fmt.Errorf("postgres://u:s3cr3t@h/d"), "key", "units/a")
	if got := out.String(); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "u:(hidden)@h/d") || !strings.Contains(got, "key=units/a") {
		t.Error(got)
	}
}
