package neco

import (
	"testing"
	"time"

	"bijou/updater/decide"
	"bijou/updater/record"
)

// TestNextChange checks that the status is read again when time alone changes it.
func TestNextChange(t *testing.T) {
	now := time.Date(2026, 1, 2, 21, 0, 0, 0, time.UTC)
	window, err := record.ParseWindow("0 22 * * *; 6h; UTC")
	if err != nil {
		t.Fatal(err)
	}
	until := func(at time.Time) *record.Pause { return &record.Pause{Until: &at} }
	never := time.Time{}
	opens := now.Add(time.Hour)
	closes := now.Add(7 * time.Hour)
	for what, tt := range map[string]struct {
		window    *record.Window
		pause     *record.Pause
		leaderDue time.Time
		now       time.Time
		want      time.Time
	}{
		"nothing":                         {nil, nil, never, now, never},
		"a leader is due":                 {window, nil, now.Add(time.Minute), now, now.Add(time.Minute)},
		"the window opens":                {window, nil, never, now, opens},
		"the window closes":               {window, until(closes.Add(1)), never, opens, closes},
		"a pause ends":                    {window, until(opens.Add(-1)), never, now, opens.Add(-1)},
		"a pause is over":                 {nil, until(now), never, now, never},
		"a pause lasts until neco resume": {nil, &record.Pause{}, never, now, never},
	} {
		t.Run(what, func(t *testing.T) {
			s := decide.Snapshot{Pause: tt.pause, Config: record.Config{Window: tt.window}}
			if got := nextChange(s, tt.leaderDue, tt.now); !got.Equal(tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
