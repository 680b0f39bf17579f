package record

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Setting is one key of the configuration.
type Setting struct {
	Key string
	// Default is the value of a setting that is not set. It can be empty.
	Default string
	Help    string
	Secret  bool // lists show only whether the setting is set

	// check returns the value in its stored form, or an error if the value is not valid.
	check func(value string) (string, error)
}

const (
	windowKey = "update-window"
	folderKey = "release-folder"
)

// Settings lists all settings of the configuration, sorted by key.
func Settings() []Setting {
	return []Setting{
		{Key: "check-update-interval", Default: "10m", Help: "how often neco looks for releases", check: durationAtLeast(time.Second)},
		{Key: "cluster", Help: "the name of this data centre, in alerts and status", check: checkWord},
		{Key: "env", Default: EnvNone, Help: "production (releases), staging (also pre-releases) or none (no updates)", check: checkEnvironment},
		{Key: "github-repository", Help: "the GitHub repository with the releases, as OWNER/NAME", check: checkRepository},
		{Key: "github-token", Help: "the token for GitHub's API", Secret: true, check: checkWord},
		{Key: "github-url", Default: "https://api.github.com/", Help: "the URL of GitHub's API, or of a GitHub Enterprise", check: urlWithScheme("http", "https")},
		{Key: "max-check-age", Default: "24h", Help: "how long checks for releases can fail before that is reported", check: durationAtLeast(time.Second)},
		{Key: "minisign-public-key", Help: "the key with which SHA256SUMS must be signed", check: checkPublicKey},
		{Key: "notify.heartbeat", Help: "a URL that the leader requests every minute, for an alarm when the requests end", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "notify.slack", Help: "the URL of a Slack webhook", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "notify.webhook", Help: "the URL to which alerts are sent as JSON", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "proxy", Help: "the URL of the HTTP proxy for releases and alerts", check: urlWithScheme("http", "https", "socks5")},
		{Key: folderKey, Help: "take releases from this directory instead of GitHub: https://HOST/PATH, or /PATH on each boot server", check: checkFolder},
		{Key: "repair", Default: RepairAsk, Help: "auto: restore in the window whatever differs from the last update; ask: only on neco repair", check: oneOf(RepairAsk, RepairAuto)},
		{Key: "survey-interval", Default: "20s", Help: "how often a worker checks the components on its server", check: durationAtLeast(time.Second)},
		{Key: "tag-prefix", Help: "the part of a release's tag before its first hyphen; empty accepts any", check: checkTagPrefix},
		{Key: windowKey, Help: `when updates may start, as "CRON; DURATION; TIMEZONE"`, check: func(value string) (string, error) { _, err := ParseWindow(value); return value, err }},
		{Key: "worker-timeout", Default: "60m", Help: "how long a worker waits for the others", check: durationAtLeast(time.Minute)},
	}
}

// FindSetting returns the setting whose key is key. If there is no such setting, the error lists all keys.
func FindSetting(key string) (Setting, error) {
	all := Settings()
	if i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == key }); i >= 0 {
		return all[i], nil
	}

	var keys []string
	for _, s := range all {
		keys = append(keys, s.Key)
	}
	return Setting{}, fmt.Errorf("there is no configuration key %q; the keys are %s", key, strings.Join(keys, ", "))
}

// Check returns the value in its stored form. If the value is not valid, it returns an error that explains
// valid values. An empty value is valid only for tag-prefix, where it accepts any prefix.
func (s Setting) Check(value string) (string, error) {
	if value == "" && s.Key != "tag-prefix" {
		return "", fmt.Errorf("cannot set %s: no value given: %s", s.Key, s.Help)
	}
	stored, err := s.check(value)
	if err != nil {
		return "", fmt.Errorf("cannot set %s to %q: %w", s.Key, s.Shown(value), err)
	}

	return stored, nil
}

// Shown returns the value for lists and messages, with secrets and the passwords of URLs hidden.
func (s Setting) Shown(value string) string {
	if s.Secret {
		return "(secret)"
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}

	return value
}

// Config is the whole configuration. Its values have been checked, and missing values have their defaults.
type Config struct {
	Cluster          string
	Env              string
	TagPrefix        string
	CheckInterval    time.Duration
	MaxCheckAge      time.Duration // how long checks for releases can fail before an alert
	WorkerTimeout    time.Duration
	SurveyInterval   time.Duration
	GitHubRepository string
	GitHubURL        string
	GitHubToken      string
	ReleaseFolder    string // the URL or path of a directory, instead of the repository
	Proxy            string
	MinisignKey      string
	NotifySlack      string
	NotifyWebhook    string
	Heartbeat        string
	Repair           string
	Window           *Window // nil if updates can start at any time
	// WindowFault is the reason why the window cannot be read, or "". A window that cannot be read never
	// opens.
	WindowFault string
	// SourceFault is the reason why the source of releases is unknown, or "". If there is such a fault, Env
	// is EnvNone.
	SourceFault string
	// WantedEnv is the value of Env without SourceFault. It is "" if there is no such fault.
	WantedEnv string
	// EnvFault is the reason why Env cannot be read, or "". If there is such a fault, Env is EnvNone.
	EnvFault string
	Faults   []string // the keys that cannot be read, and the reasons
}

// ReadConfig returns the configuration with the stored values. If a value cannot be read, ReadConfig records
// a fault and uses the default. Three faults also prevent updates: an update window with a fault never opens, a new
// release starts no update while env has a fault, and no release is installed if a setting of the release source has
// one. Two release sources at once also count as such a fault, but are not in Faults. A key that this version does
// not know is ignored, unless its value is not JSON, which is a fault.
func ReadConfig(stored map[string]json.RawMessage) (c Config) {
	values := map[string]string{}
	faults := map[string]string{} // the reasons why values cannot be read, by key
	for key, raw := range stored {
		if !json.Valid(raw) {
			faults[key] = "it is not JSON"
		}
	}

	for _, s := range Settings() {
		v, err := s.readStored(stored)
		if err != nil {
			faults[s.Key] = err.Error()
			v = s.Default
		}
		values[s.Key] = v
	}

	c = newConfig(values)
	c.WindowFault = faults[windowKey]
	c.EnvFault = faults["env"]
	sourceKeys := []string{
		"github-repository", "github-url", "github-token", "minisign-public-key", "proxy", folderKey, "tag-prefix",
	}
	for _, key := range slices.Sorted(maps.Keys(faults)) {
		c.Faults = append(c.Faults, key+": "+faults[key])
		if slices.Contains(sourceKeys, key) {
			c.blockReleases(key + " cannot be read: " + faults[key])
		}
	}

	// An earlier version, which does not know release-folder, may have set the repository as well.
	if c.ReleaseFolder != "" && c.GitHubRepository != "" && c.SourceFault == "" {
		c.blockReleases(folderKey + " and github-repository are both set")
	}

	return c
}

// blockReleases sets Env to EnvNone, and records the fault of the release source and the configured Env.
func (c *Config) blockReleases(fault string) {
	c.WantedEnv = cmp.Or(c.WantedEnv, c.Env)
	c.Env = EnvNone
	c.SourceFault = fault
}

// readStored returns the stored value of the setting, as Check returns it. It returns the default if the setting is
// not set, or if its stored value is empty and Check does not accept that.
func (s Setting) readStored(stored map[string]json.RawMessage) (value string, err error) {
	raw, ok := stored[s.Key]
	if !ok {
		return s.Default, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", errors.New("it is not a JSON string")
	}

	checked, err := s.Check(value)
	if value == "" && err != nil {
		return s.Default, nil
	}
	return checked, err
}

// newConfig returns the configuration with the values, which are by key, and either checked or defaults. An empty
// window becomes nil.
func newConfig(values map[string]string) (c Config) {
	c = Config{
		Cluster:          values["cluster"],
		Env:              values["env"],
		TagPrefix:        values["tag-prefix"],
		GitHubRepository: values["github-repository"],
		GitHubURL:        values["github-url"],
		GitHubToken:      values["github-token"],
		ReleaseFolder:    values[folderKey],
		Proxy:            values["proxy"],
		MinisignKey:      values["minisign-public-key"],
		NotifySlack:      values["notify.slack"],
		NotifyWebhook:    values["notify.webhook"],
		Heartbeat:        values["notify.heartbeat"],
		Repair:           values["repair"],
	}

	// All durations have defaults, so each can be parsed.
	c.CheckInterval, _ = time.ParseDuration(values["check-update-interval"])
	c.MaxCheckAge, _ = time.ParseDuration(values["max-check-age"])
	c.WorkerTimeout, _ = time.ParseDuration(values["worker-timeout"])
	c.SurveyInterval, _ = time.ParseDuration(values["survey-interval"])
	if w := values[windowKey]; w != "" {
		c.Window, _ = ParseWindow(w)
	}
	return c
}

// HasSource reports whether a source of releases is configured.
func (c Config) HasSource() bool { return c.GitHubRepository != "" || c.ReleaseFolder != "" }

// WantsReleases reports whether releases would be installed if there were no SourceFault.
func (c Config) WantsReleases() bool {
	return slices.Contains([]string{EnvProduction, EnvStaging}, cmp.Or(c.WantedEnv, c.Env))
}

// The environments of a data centre.
const (
	EnvProduction = "production"
	EnvStaging    = "staging"
	EnvNone       = "none"
)

// checkEnvironment accepts the names of environments, and prod for production.
func checkEnvironment(value string) (string, error) {
	if value == "prod" {
		return EnvProduction, nil
	}
	if !slices.Contains([]string{EnvProduction, EnvStaging, EnvNone}, value) {
		return "", fmt.Errorf("want %s, %s or %s", EnvProduction, EnvStaging, EnvNone)
	}

	return value, nil
}

// The values of repair. With RepairAuto, changes since the last update are repaired in the update window.
// With RepairAsk, they are only reported.
const (
	RepairAsk  = "ask"
	RepairAuto = "auto"
)

// oneOf returns a check that accepts only these values.
func oneOf(values ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !slices.Contains(values, value) {
			return "", fmt.Errorf("want %s", strings.Join(values, " or "))
		}
		return value, nil
	}
}

// durationAtLeast returns a check that accepts durations that are not shorter than least.
func durationAtLeast(least time.Duration) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return "", errors.New(`a duration is a number with a unit, as in "90m" or "1h30m"`)
		}
		if d < least {
			return "", fmt.Errorf("want at least %s", least)
		}

		return value, nil
	}
}

// checkRepository accepts the name of a repository on GitHub, as OWNER/NAME.
func checkRepository(value string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`).MatchString(value) {
		return "", errors.New("want OWNER/NAME")
	}
	return value, nil
}

// checkWord accepts printable ASCII without blanks.
func checkWord(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the value contains a space or a character that is not printable ASCII")
	}
	return value, nil
}

// urlWithScheme returns a check that accepts URLs that have one of the schemes and name a host.
func urlWithScheme(schemes ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			return "", fmt.Errorf("want a URL that begins with %s:// and names a host",
				strings.Join(schemes, ":// or "))
		}
		return value, nil
	}
}

// checkFolder accepts the URL or the absolute path of a directory of releases. A path may be written as a file URL.
// checkFolder returns a path in its shortest form, without file://.
func checkFolder(value string) (string, error) {
	if path := strings.TrimPrefix(value, "file://"); strings.HasPrefix(path, "/") {
		if strings.ContainsFunc(path, unicode.IsControl) {
			return "", errors.New("a path cannot contain control characters")
		}
		return filepath.Clean(path), nil
	}

	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return "", errors.New("want https://HOST/PATH, http://HOST/PATH or an absolute path")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("want a URL without ? and #")
	}

	return value, nil
}

// checkTagPrefix accepts words without hyphens, since a hyphen separates the prefix from the version.
func checkTagPrefix(value string) (string, error) {
	if strings.Contains(value, "-") {
		return "", errors.New("want a prefix without hyphens")
	}
	return checkWord(value)
}

// checkPublicKey accepts a public key in minisign's format: base64 of the algorithm ("Ed", 2 bytes), the
// key ID (8 bytes) and the Ed25519 key (32 bytes).
func checkPublicKey(value string) (string, error) {
	const size = 2 + 8 + 32
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) != size || string(raw[:2]) != "Ed" {
		return "", errors.New("it is not a minisign public key (56 characters that begin with RW)")
	}
	return value, nil
}
