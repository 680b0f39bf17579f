package record

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const aKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"

func TestSettings(t *testing.T) {
	var got []string
	for _, s := range Settings() {
		got = append(got, s.Key)
		if s.Help == "" {
			t.Errorf("%s is not explained", s.Key)
		}
		if s.Default == "" {
			continue
		}
		if stored, err := s.Check(s.Default); err != nil || stored != s.Default {
			t.Errorf("the default of %s: %q, %v", s.Key, stored, err)
		}
	}
	want := strings.Fields(`cluster env tag-prefix check-update-interval worker-timeout github-repository github-url github-token release-folder proxy
		max-check-age minisign-public-key notify.heartbeat notify.slack notify.webhook repair survey-interval update-window`)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	tests := []struct{ key, value, want, err string }{
		{"env", "prod", "production", ""},
		{"env", "staging", "staging", ""},
		{"env", "dev", "", `cannot set env to "dev": want production, staging or none`},
		{"env", "", "", "cannot set env: no value given"},
		{"tag-prefix", "", "", ""},
		{"tag-prefix", "release", "release", ""},
		{"tag-prefix", "my-release", "", "without hyphens"},
		{"check-update-interval", "90s", "90s", ""},
		{"check-update-interval", "0", "", "at least 1s"},
		{"check-update-interval", "-5m", "", "at least 1s"},
		{"check-update-interval", "10", "", "a number with a unit"},
		{"worker-timeout", "60m", "60m", ""},
		{"worker-timeout", "1m", "1m", ""},
		{"worker-timeout", "59s", "", "at least 1m0s"}, // the original neco failed on this
		{"worker-timeout", "0s", "", "at least 1m0s"},
		{"worker-timeout", "-1h", "", "at least 1m0s"},
		{"github-repository", "cybozu-go/neco", "cybozu-go/neco", ""},
		{"github-repository", "neco", "", "OWNER/NAME"},
		{"release-folder", "https://releases.example.com/boot", "https://releases.example.com/boot", ""},
		{"release-folder", "http://user:word@10.0.0.1:8080/", "http://user:word@10.0.0.1:8080/", ""},
		{"release-folder", "/srv/releases/", "/srv/releases", ""},
		{"release-folder", "file:///srv/releases", "/srv/releases", ""},
		{"release-folder", "releases", "", "an absolute path"},
		{"release-folder", "file://host/srv", "", "an absolute path"},
		{"release-folder", "ftp://host/srv", "", "an absolute path"},
		{"release-folder", "https://host/a?token=x", "", "without ?"},
		{"github-url", "https://github.example.com/api/v3/", "https://github.example.com/api/v3/", ""},
		{"github-url", "github.example.com", "", "begins with http:// or https://"},
		{"github-token", "ghp x", "", `cannot set github-token to "(secret)": the value contains a space`},
		{"proxy", "http://proxy:3128", "http://proxy:3128", ""},
		{"proxy", "ftp://proxy", "", "socks5://"},
		{"proxy", "ftp://u:word@proxy", "", `"ftp://u:xxxxx@proxy"`},
		{"minisign-public-key", aKey, aKey, ""},
		{"minisign-public-key", aKey[1:], "", "not a minisign public key"},
		{"notify.slack", "https://hooks.slack.com/services/x", "https://hooks.slack.com/services/x", ""},
		{"notify.slack", "hooks", "", `"(secret)"`},
		{"notify.webhook", "http://host:8080/hook", "http://host:8080/hook", ""},
		{"update-window", "0 2 * * 1-5; 3h; Asia/Tokyo", "0 2 * * 1-5; 3h; Asia/Tokyo", ""},
		{"update-window", "0 2 * * 1-5", "", "a window is"},
		{"update-window", "0 2 * *; 3h; UTC", "", "does not have five fields"},
		{"update-window", "TZ=UTC 2 * * *; 3h; UTC", "", "cannot read the cron line"},
		{"update-window", "@every 1h; 3h; UTC", "", "does not have five fields"},
		{"update-window", "0 25 * * *; 3h; UTC", "", "cannot read the cron line"},
		{"update-window", "0 2 31 2 *; 3h; UTC", "", "matches no date"},
		{"update-window", "0 2 * * *; 0s; UTC", "", "must last between one minute"},
		{"update-window", "0 2 * * *; 3h; Mars/Olympus", "", `no time zone "Mars/Olympus"`},
		{"update-window", "0 2 * * *; 3h; ", "", `no time zone ""`},
	}
	for _, tt := range tests {
		s, err := FindSetting(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Check(tt.value)
		if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %q: %q, %v, want %q, %q", tt.key, tt.value, got, err, tt.want, tt.err)
		}
	}
	if _, err := FindSetting("environment"); err == nil || !strings.Contains(err.Error(), `no configuration key "environment"; the keys are check-update-interval, cluster, env, `) {
		t.Errorf("unknown key: %v", err)
	}
}

// TestReadConfigDefaults checks the configuration without any keys. In the original neco, an unset proxy was
// a fatal error.
func TestReadConfigDefaults(t *testing.T) {
	got := ReadConfig(nil)
	want := Config{Env: EnvNone, CheckInterval: 10 * time.Minute, MaxCheckAge: 24 * time.Hour, WorkerTimeout: time.Hour, SurveyInterval: 20 * time.Second, GitHubURL: "https://api.github.com/", Repair: RepairAsk}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// stored returns a configuration with these additional keys, in their stored form.
func stored(keyValues ...string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{"env": json.RawMessage(`"prod"`)}
	for i := 0; i < len(keyValues); i += 2 {
		all[keyValues[i]] = json.RawMessage(keyValues[i+1])
	}
	return all
}

func TestReadConfig(t *testing.T) {
	got := ReadConfig(stored("worker-timeout", `"90m"`, "tag-prefix", `""`, "update-window", `"0 2 * * *; 3h; UTC"`, "of-a-later-version", `{"x":1}`))
	if got.Env != EnvProduction || got.WorkerTimeout != 90*time.Minute || got.Window == nil || got.Faults != nil {
		t.Errorf("%+v", got)
	}
}

// TestEmptyValuesAreDefaults checks values that neco config set refuses, but that another program may have written.
// Without an interval, the leader would ask for releases without pause.
func TestEmptyValuesAreDefaults(t *testing.T) {
	got := ReadConfig(stored("check-update-interval", `""`, "worker-timeout", `""`, "survey-interval", `""`, "update-window", `""`))
	want := ReadConfig(stored())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestConfigFaults checks that the error names an unreadable key, and that the key blocks only the actions
// that depend on it.
func TestConfigFaults(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		fault      string
		holds      func(Config) bool
	}{
		{"update-window", `"0 2 * * *; 3h; Mars/Olympus"`, "Mars/Olympus", func(c Config) bool { return c.Window == nil && strings.Contains(c.WindowFault, "Mars/Olympus") }},
		{"update-window", `{"cron":"x"}`, "not a JSON string", func(c Config) bool { return c.Window == nil && c.WindowFault != "" }},
		{"worker-timeout", `"0"`, "at least 1m0s", func(c Config) bool { return c.WorkerTimeout == time.Hour }},
		{"worker-timeout", `soon`, "not a JSON string", func(c Config) bool { return c.WorkerTimeout == time.Hour && c.Env == EnvProduction }},
		{"env", `testing`, "not a JSON string", func(c Config) bool { return c.Env == EnvNone && c.EnvFault != "" && !c.WantsReleases() }},
		{"minisign-public-key", `RWQ`, "not a JSON string", func(c Config) bool { return c.Env == EnvNone && c.SourceFault != "" && c.WantsReleases() }},
		{"github-url", `"ftp://x"`, "begins with http", func(c Config) bool { return c.Env == EnvNone && c.SourceFault != "" }},
		{"of-a-later-version", `x`, "not JSON", func(c Config) bool { return c.Env == EnvProduction }},
	} {
		c := ReadConfig(stored(tt.key, tt.value))
		if len(c.Faults) != 1 || !strings.HasPrefix(c.Faults[0], tt.key+": ") || !strings.Contains(c.Faults[0], tt.fault) || !tt.holds(c) {
			t.Errorf("%s=%s: %+v", tt.key, tt.value, c)
		}
	}
}

func TestWindow(t *testing.T) {
	w, err := ParseWindow("0 22 * * 5; 6h; Asia/Tokyo") // Fridays, 22:00 to 04:00 in Tokyo: 13:00 to 19:00 UTC
	if err != nil {
		t.Fatal(err)
	}
	friday := time.Date(2018, 11, 9, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Duration]bool{
		12*time.Hour + 59*time.Minute: false, 13 * time.Hour: true, 18*time.Hour + 59*time.Minute: true, 19 * time.Hour: false, 37 * time.Hour: false,
	} {
		if got := w.IsOpen(friday.Add(at)); got != want {
			t.Errorf("%s: %t", friday.Add(at), got)
		}
	}
	if got, want := w.NextOpening(friday.Add(14*time.Hour)), friday.Add((7*24+13)*time.Hour); !got.Equal(want) {
		t.Errorf("opens next at %s, want %s", got, want)
	}
	for at, want := range map[time.Duration]time.Duration{
		12 * time.Hour: 13 * time.Hour, 13 * time.Hour: 19 * time.Hour, 18 * time.Hour: 19 * time.Hour, 19 * time.Hour: (7*24 + 13) * time.Hour,
	} {
		if got := w.NextEdge(friday.Add(at)); !got.Equal(friday.Add(want)) {
			t.Errorf("at %s it changes next at %s, want %s", friday.Add(at), got, friday.Add(want))
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("0 2 * * 1-5; 3h; Asia/Tokyo")
	f.Add("TZ= 2 * * *; 3h; UTC")
	at := time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWindow(s)
		if err != nil {
			return
		}
		if next := w.NextOpening(at); next.IsZero() || !w.IsOpen(next) {
			t.Errorf("%q opens at %s, but is closed then", s, next)
		}
		edge := w.NextEdge(at)
		if isOpen := w.IsOpen(at); !edge.After(at) || w.IsOpen(edge.Add(-time.Nanosecond)) != isOpen || !isOpen && !w.IsOpen(edge) {
			t.Errorf("%q changes next at %s, open until then: %t", s, edge, isOpen)
		}
	})
}
