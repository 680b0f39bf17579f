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
	Key     string
	Default string // "" may also mean that there is none
	Help    string
	Secret  bool // lists show that it is set, not what to

	// check returns the value as it is stored, or the reason against it.
	check func(value string) (string, error)
}

const (
	windowKey = "update-window"
	folderKey = "release-folder"
)

// Settings lists all settings of the configuration, sorted by key.
func Settings() []Setting {
	return []Setting{
		{Key: "check-update-interval", Default: "10m", Help: "how often releases are looked for", check: durationAtLeast(time.Second)},
		{Key: "cluster", Help: "what this data centre is called, in alerts and status", check: checkWord},
		{Key: "env", Default: EnvNone, Help: "production (releases), staging (pre-releases, too) or none (no updates)", check: checkEnvironment},
		{Key: "github-repository", Help: "OWNER/NAME of the repository whose releases are taken", check: checkRepository},
		{Key: "github-token", Help: "token for GitHub's API", Secret: true, check: checkWord},
		{Key: "github-url", Default: "https://api.github.com/", Help: "GitHub's API, or where a GitHub Enterprise is", check: urlWithScheme("http", "https")},
		{Key: "max-check-age", Default: "24h", Help: "how long releases cannot be looked for before that is reported", check: durationAtLeast(time.Second)},
		{Key: "minisign-public-key", Help: "key that must have signed SHA256SUMS", check: checkPublicKey},
		{Key: "notify.heartbeat", Help: "URL that the leader gets every minute; alarm when that ends", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "notify.slack", Help: "URL of a Slack webhook", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "notify.webhook", Help: "URL that gets alerts as JSON", Secret: true, check: urlWithScheme("http", "https")},
		{Key: "proxy", Help: "URL of the HTTP proxy for releases and notices", check: urlWithScheme("http", "https", "socks5")},
		{Key: folderKey, Help: "folder with releases, in the place of GitHub: https://HOST/PATH, or /PATH on each boot server", check: checkFolder},
		{Key: "repair", Default: RepairAsk, Help: "auto: what is not as the last update left it is put right in the window; ask: neco repair does it", check: oneOf(RepairAsk, RepairAuto)},
		{Key: "survey-interval", Default: "20s", Help: "how often a worker looks at what is on its server", check: durationAtLeast(time.Second)},
		{Key: "tag-prefix", Help: "what stands before a tag's first hyphen; empty: anything", check: checkTagPrefix},
		{Key: windowKey, Help: `when updates may start, as "CRON; DURATION; TIMEZONE"`, check: func(value string) (string, error) { _, err := ParseWindow(value); return value, err }},
		{Key: "worker-timeout", Default: "60m", Help: "how long a worker waits for the others", check: durationAtLeast(time.Minute)},
	}
}

// FindSetting returns the setting of that key; the error lists those there are.
func FindSetting(key string) (Setting, error) {
	all := Settings()
	if i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == key }); i >= 0 {
		return all[i], nil
	}

	var keys []string
	for _, s := range all {
		keys = append(keys, s.Key)
	}
	return Setting{}, fmt.Errorf("there is no configuration key %q; there are %s", key, strings.Join(keys, ", "))
}

// Check returns the value to store, or an error that explains what the setting wants.
func (s Setting) Check(value string) (string, error) {
	if value == "" && s.Key != "tag-prefix" {
		return "", fmt.Errorf("cannot set %s: a value is missing: %s", s.Key, s.Help)
	}
	stored, err := s.check(value)
	if err != nil {
		return "", fmt.Errorf("cannot set %s to %q: %w", s.Key, s.Shown(value), err)
	}

	return stored, nil
}

// Shown returns the value as lists and messages may repeat it: without secrets, and
// without the password of an address.
func (s Setting) Shown(value string) string {
	if s.Secret {
		return "(secret)"
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}

	return value
}

// Config is the whole configuration, checked and complete with defaults.
type Config struct {
	Cluster          string
	Env              string
	TagPrefix        string
	CheckInterval    time.Duration
	MaxCheckAge      time.Duration // for how long looks for releases may fail
	WorkerTimeout    time.Duration
	SurveyInterval   time.Duration
	GitHubRepository string
	GitHubURL        string
	GitHubToken      string
	ReleaseFolder    string // the URL or the path of a folder, in place of the repository
	Proxy            string
	MinisignKey      string
	NotifySlack      string
	NotifyWebhook    string
	Heartbeat        string
	Repair           string
	Window           *Window // nil: always
	WindowFault      string  // why the window cannot be read, so that it never opens; "" is fine
	// SourceFault is why nobody can tell where releases come from, so that Env is EnvNone; "" is fine.
	SourceFault string
	WantedEnv   string   // Env as it would be without that fault; "" without one
	EnvFault    string   // why Env cannot be read, so that it is EnvNone; "" is fine
	Faults      []string // keys that cannot be read, and why
}

// ReadConfig makes a Config of the stored values. A value that cannot be read is a fault, and its default
// counts. There are two exceptions: an update window with a fault never opens, and no release is taken if a
// setting of the source has one. It ignores keys that this version does not know.
func ReadConfig(stored map[string]json.RawMessage) (c Config) {
	value := map[string]string{}
	faults := map[string]string{}
	for key, raw := range stored {
		if !json.Valid(raw) {
			faults[key] = "it is no JSON"
		}
	}

	for _, s := range Settings() {
		v, err := s.readStored(stored)
		if err != nil {
			faults[s.Key] = err.Error()
			v = s.Default
		}
		value[s.Key] = v
	}

	c = newConfig(value)
	c.WindowFault = faults[windowKey]
	c.EnvFault = faults["env"]
	for _, key := range slices.Sorted(maps.Keys(faults)) {
		c.Faults = append(c.Faults, key+": "+faults[key])
		if slices.Contains([]string{"github-repository", "github-url", "github-token", "minisign-public-key", "proxy", folderKey, "tag-prefix"}, key) {
			c.blockReleases(key + " cannot be read: " + faults[key])
		}
	}

	// A version that does not know the folder may have set the repository.
	if c.ReleaseFolder != "" && c.GitHubRepository != "" && c.SourceFault == "" {
		c.blockReleases(folderKey + " and github-repository are both set")
	}

	return c
}

func (c *Config) blockReleases(fault string) {
	c.WantedEnv = cmp.Or(c.WantedEnv, c.Env)
	c.Env = EnvNone
	c.SourceFault = fault
}

func (s Setting) readStored(stored map[string]json.RawMessage) (value string, err error) {
	raw, ok := stored[s.Key]
	if !ok {
		return s.Default, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", errors.New("it is no JSON string")
	}
	if value == "" {
		return "", nil
	}

	return s.Check(value)
}

// newConfig returns the configuration with these values. They have been checked: a value that cannot be
// parsed counts as not set.
func newConfig(value map[string]string) (c Config) {
	c = Config{
		Cluster:          value["cluster"],
		Env:              value["env"],
		TagPrefix:        value["tag-prefix"],
		GitHubRepository: value["github-repository"],
		GitHubURL:        value["github-url"],
		GitHubToken:      value["github-token"],
		ReleaseFolder:    value[folderKey],
		Proxy:            value["proxy"],
		MinisignKey:      value["minisign-public-key"],
		NotifySlack:      value["notify.slack"],
		NotifyWebhook:    value["notify.webhook"],
		Heartbeat:        value["notify.heartbeat"],
		Repair:           value["repair"],
	}

	c.CheckInterval, _ = time.ParseDuration(value["check-update-interval"])
	c.MaxCheckAge, _ = time.ParseDuration(value["max-check-age"])
	c.WorkerTimeout, _ = time.ParseDuration(value["worker-timeout"])
	c.SurveyInterval, _ = time.ParseDuration(value["survey-interval"])
	if w := value[windowKey]; w != "" {
		c.Window, _ = ParseWindow(w)
	}
	return c
}

// HasSource reports whether the configuration says where releases come from.
func (c Config) HasSource() bool { return c.GitHubRepository != "" || c.ReleaseFolder != "" }

// WantsReleases reports whether releases should be taken, even while SourceFault keeps them away.
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
		return "", fmt.Errorf("an environment is %s, %s or %s", EnvProduction, EnvStaging, EnvNone)
	}

	return value, nil
}

// The values of repair: what is done about something that is not as the last update left it.
const (
	RepairAsk  = "ask"
	RepairAuto = "auto"
)

func oneOf(values ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !slices.Contains(values, value) {
			return "", fmt.Errorf("it is %s", strings.Join(values, " or "))
		}
		return value, nil
	}
}

func durationAtLeast(least time.Duration) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return "", errors.New(`a duration is a number with a unit, as in "90m" or "1h30m"`)
		}
		if d < least {
			return "", fmt.Errorf("it is at least %s", least)
		}

		return value, nil
	}
}

func checkRepository(value string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`).MatchString(value) {
		return "", errors.New("a repository is OWNER/NAME")
	}
	return value, nil
}

// checkWord accepts printable ASCII without blanks.
func checkWord(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("it holds a blank or a character that is not printable ASCII")
	}
	return value, nil
}

func urlWithScheme(schemes ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			return "", fmt.Errorf("a URL here begins with %s:// and names a host",
				strings.Join(schemes, ":// or "))
		}
		return value, nil
	}
}

// checkFolder checks the URL or the path of a directory of releases. A path may be written as a file URL.
func checkFolder(value string) (string, error) {
	if path := strings.TrimPrefix(value, "file://"); strings.HasPrefix(path, "/") {
		if strings.ContainsFunc(path, unicode.IsControl) {
			return "", errors.New("a path has no control characters")
		}
		return filepath.Clean(path), nil
	}

	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("a folder is https://HOST/PATH, http://HOST/PATH or an absolute path")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("the URL of a folder has no ? and no #")
	}

	return value, nil
}

func checkTagPrefix(value string) (string, error) {
	if strings.Contains(value, "-") {
		return "", errors.New("a tag's prefix ends before its first hyphen, so none is in it")
	}
	return checkWord(value)
}

// checkPublicKey accepts the line that minisign shows: base64 of 2 bytes of algorithm
// ("Ed"), 8 of key id and 32 of Ed25519 key.
func checkPublicKey(value string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) != 42 || string(raw[:2]) != "Ed" {
		return "", errors.New("it is no minisign public key (56 characters that begin with RW)")
	}
	return value, nil
}
