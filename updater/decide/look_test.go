package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestNoteLook checks that failing checks for releases are reported once if they fail for too long. In that
// case their end is also reported once. Each letter is a check, one hour after the previous one: f fails, w
// succeeds, and m fails for a release to which servers would update. l is a new leader whose clock is an hour
// ahead.
func TestNoteLook(t *testing.T) {
	for what, tt := range map[string]struct {
		looks  string
		former bool // a leader of an earlier version has recorded the first failure
		want   string
	}{
		"well":                          {"www", false, ""},
		"fails for a while":             {"fffw", false, ""},
		"fails for a day":               {"wffffff", false, "6 all checks for releases have failed"},
		"and is told once":              {"ffffffffff", false, "5 all checks for releases have failed"},
		"and that it is over":           {"fffffffw", false, "5 all checks for releases have failed|8 succeed again, after 7h0m0s"},
		"again":                         {"ffffffwffffff", false, "5 all checks for releases have failed|7 succeed again|12 all checks for releases have failed"},
		"with another clock":            {"ffflll", false, "4 all checks for releases have failed"},
		"a release cannot be had":       {"mmw", false, "1 cannot fetch release 1.2"},
		"for long":                      {"mmmmmm", false, "1 cannot fetch release 1.2|5 all checks for releases have failed"},
		"after one of a former version": {"ffffff", true, "4 all checks for releases have failed"},
	} {
		t.Run(what, func(t *testing.T) {
			var was *record.CheckFailure
			if tt.former {
				was = &record.CheckFailure{Message: "x", At: t0()}
			}

			var got []string
			for i, how := range tt.looks {
				l := Look{Failure: "503", At: t0().Add(time.Duration(i+1) * time.Hour), MaxAge: 4 * time.Hour}
				switch how {
				case 'w':
					l.Failure = ""
				case 'm':
					l.Missed = "1.2"
				case 'l':
					l.At = l.At.Add(time.Hour)
				}

				for _, c := range NoteLook(was, l) {
					switch v := c.Value.(type) {
					case record.CheckFailure:
						was = &v
					case record.Alert:
						got = append(got, fmt.Sprint(i+1, " ", v.Message))
					case nil:
						if c.Key == keys.CheckFailure {
							was = nil
						}
					}
				}
			}

			want := strings.Split(tt.want, "|")
			if tt.want == "" {
				want = nil
			}
			if len(got) != len(want) {
				t.Fatalf("%q, want %q", got, want)
			}
			for i := range want {
				number, words, _ := strings.Cut(want[i], " ")
				if !strings.HasPrefix(got[i], number+" ") || !strings.Contains(got[i], words) {
					t.Errorf("%q, want %q", got[i], want[i])
				}
			}
		})
	}
}

// TestNoteWithdrawn checks that each withdrawn release is reported once.
func TestNoteWithdrawn(t *testing.T) {
	found := func(version, newest string) *record.Withdrawn {
		return &record.Withdrawn{Version: version, Newest: newest}
	}
	alerts := 0
	var was *record.Withdrawn
	for i, step := range []struct {
		now  *record.Withdrawn
		want int
	}{{nil, 0}, {found("9999.1", "1.0"), 1}, {found("9999.1", "1.0"), 1}, {found("9999.1", "1.1"), 1}, {nil, 1}, {found("9999.1", "1.1"), 2}} {
		for _, c := range NoteWithdrawn(was, step.now, t0().Add(time.Duration(i)*time.Hour)) {
			switch v := c.Value.(type) {
			case record.Withdrawn:
				was = &v
			case record.Alert:
				alerts++
			case nil:
				was = nil
			}
		}
		if alerts != step.want || (was == nil) != (step.now == nil) {
			t.Errorf("step %d: %d alerts and %+v, want %d", i, alerts, was, step.want)
		}
	}
}
