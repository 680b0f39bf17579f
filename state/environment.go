package state

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// ProviderLocal is the provider whose machines are directories on this host. Units go to its machine 0 by
// default.
const ProviderLocal = "local"

// ProviderNspawn is the provider whose machines are systemd-nspawn containers.
const ProviderNspawn = "nspawn"

// The keys of Environment.Config.
const (
	AllowOtherSeries = "allow-other-series"        // "false" (default) or "true"
	RetryHooks       = "automatically-retry-hooks" // "true" (default) or "false"
	StatusInterval   = "update-status-interval"    // "5m" (default); "0" means never
	HookTimeout      = "hook-timeout"              // how long a hook can run; "0" (default) means without a limit
	HookConcurrency  = "hook-concurrency"          // how many hooks run at a time on one machine
	ProviderSHA256   = "provider-sha256"           // the sum that the provider's executable must have
	HarvestMode      = "provisioner-harvest-mode"  // a Harvest
	ResolvedSkips    = "resolved-skips"            // "true" (default) or "false", which bootstrap sets
	CharmhubURL      = "charmhub-url"              // the URL of the store of charms

	// The proxies in the environment of hooks; "" (default) means none.
	CharmHTTPProxy  = "juju-http-proxy"
	CharmHTTPSProxy = "juju-https-proxy"
	CharmFTPProxy   = "juju-ftp-proxy"
	CharmNoProxy    = "juju-no-proxy"
)

// EnvironmentSetting describes one key of Environment.Config for operators.
type EnvironmentSetting struct {
	Key     string
	Values  string // the allowed values, in words
	Default string
	Meaning string
}

// EnvironmentSettings describes the keys of Environment.Config that this binary knows, sorted by key. It leaves
// out the settings of providers.
func EnvironmentSettings() []EnvironmentSetting {
	return []EnvironmentSetting{
		{AllowOtherSeries, "true or false", "false", "let charms run on machines of a series that they do not support"},
		{RetryHooks, "true or false", "true", "retry a failed hook automatically"},
		{CharmhubURL, "a URL", "https://api.charmhub.io", "the URL of the store of charms: Charmhub, or a mirror of it"},
		{HookConcurrency, "a number from 1", "the number of CPUs on local, otherwise 1", "how many hooks can run at a time on one machine"},
		{HookTimeout, "a duration, 0 is never", "0", "how long a hook can run before bijou ends it and counts it as failed"},
		{CharmFTPProxy, "a URL", "none", "the proxy for FTP that charms see as JUJU_CHARM_FTP_PROXY"},
		{CharmHTTPProxy, "a URL", "none", "the proxy for HTTP that charms see as JUJU_CHARM_HTTP_PROXY, and that bijou uses to reach the store of charms"},
		{CharmHTTPSProxy, "a URL", "none", "the proxy for HTTPS that charms see as JUJU_CHARM_HTTPS_PROXY, and that bijou uses to reach the store of charms"},
		{CharmNoProxy, "host names, separated by commas", "none", "the hosts that charms reach without a proxy, as JUJU_CHARM_NO_PROXY"},
		{ProviderSHA256, "64 hexadecimal digits", "set by bootstrap", "the sha256 that the provider's executable must have"},
		{HarvestMode, strings.Join(harvestModes(), ", "), string(HarvestDestroyed), "which instances the provisioner stops: those of removed machines, unknown instances, both, or none"},
		{ResolvedSkips, "true or false", "true; bootstrap sets false", "whether juju resolved without --retry skips a failed hook; if false, juju resolved without --no-retry runs the hook again"},
		{StatusInterval, "a duration, 0 is never", "5m", "the time between two update-status hooks of an idle unit"},
	}
}

// Environment is the environment's own record.
type Environment struct {
	Name          string `json:"name"`
	UUID          string `json:"uuid"`
	Provider      string `json:"provider"`
	DefaultSeries string `json:"default-series"`
	// HostSeries is the series of all machines. Empty means that machines can have any series.
	HostSeries string `json:"host-series,omitempty"`
	// Config has the settings by the keys above, and the provider's settings by PROVIDER.KEY.
	Config map[string]string `json:"config,omitempty"`
	// Tools is the binary that agents must run, as VERSION-SHA8. Empty means that they keep their current
	// binaries.
	Tools string `json:"tools,omitempty"`

	// Constraints are the defaults for future units and machines.
	Constraints constraints.Value `json:"constraints,omitzero"`
	// Incarnation counts how often a backup was restored in place of the environment.
	Incarnation int `json:"incarnation,omitempty"`
	// Restored names the backup that was restored last. It is empty if no backup was restored, or if its name
	// is unknown.
	Restored string `json:"restored,omitempty"`
}

// ProviderConfig returns the settings of the environment's provider. The keys are without the provider's name: the
// setting nspawn.apt-repository has the key apt-repository.
func (e Environment) ProviderConfig() map[string]string {
	own := map[string]string{}
	for key, value := range e.Config {
		if name, ok := strings.CutPrefix(key, e.Provider+"."); ok {
			own[name] = value
		}
	}

	return own
}

// CharmProxies are the proxies that the environment sets for charms. Each of them can be empty.
type CharmProxies struct{ HTTP, HTTPS, FTP, None string }

// CharmProxies returns the proxies for charms.
func (e Environment) CharmProxies() CharmProxies {
	return CharmProxies{
		HTTP:  e.Config[CharmHTTPProxy],
		HTTPS: e.Config[CharmHTTPSProxy],
		FTP:   e.Config[CharmFTPProxy],
		None:  e.Config[CharmNoProxy],
	}
}

// IsConfined reports whether machines reach the state through a gateway, each with the rights of its units. A
// change takes effect the next time that a machine starts.
func (e Environment) IsConfined() bool { return e.ProviderConfig()["confined"] == "true" }

// RetryHooks reports whether failed hooks are retried automatically.
func (e Environment) RetryHooks() bool { return e.Config[RetryHooks] != "false" }

// ResolvedSkips reports whether `juju resolved` skips the failed hook by default, rather than run it again.
// It is true for environments that are older than the setting.
func (e Environment) ResolvedSkips() bool { return e.Config[ResolvedSkips] != "false" }

// StatusInterval is the time between update-status hooks of an idle unit; 0 means never.
func (e Environment) StatusInterval() time.Duration {
	if d, err := time.ParseDuration(e.Config[StatusInterval]); err == nil {
		return d
	}
	return 5 * time.Minute
}

// HookTimeout is the time after which a running hook is terminated; 0 means never.
func (e Environment) HookTimeout() time.Duration {
	d, _ := time.ParseDuration(e.Config[HookTimeout])
	return d
}

// HookConcurrency is how many hooks can run at a time on one machine. It is 0 if the setting is not set. The
// agent then chooses a number that suits its provider.
func (e Environment) HookConcurrency() int {
	n, _ := strconv.Atoi(e.Config[HookConcurrency])
	return n
}

// Environment reads the environment's record.
func (v *View) Environment() (Environment, error) {
	return keyspace.LoadExisting[Environment](v.keys, keys.Environment, "the model's record is missing")
}

// SetEnvironment changes configuration values; nil resets a key to its default. It returns an error if it would
// set an unknown key or an invalid value. It can reset every key, and does not check values that it does not
// change, since a newer binary may have set them.
func (tx *Tx) SetEnvironment(changes map[string]*string) error {
	e, err := tx.Environment()
	if err != nil {
		return err
	}

	config := map[string]string{}
	maps.Copy(config, e.Config)

	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		if value == nil {
			delete(config, key)
			continue
		}
		if err := e.checkSetting(key, *value); err != nil {
			return fmt.Errorf("cannot change the model's settings: %w", err)
		}
		config[key] = *value
	}

	e.Config = config
	return tx.keys.Put(keys.Environment, e)
}

// UnknownSettings lists the keys of the configuration that this binary does not know, sorted. A newer binary
// has set them.
func (e Environment) UnknownSettings() []string {
	known := settingNames()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.Config)), func(key string) bool {
		return slices.Contains(known, key) || e.isProviderSetting(key) || IsJujuSetting(key)
	})
}

// isProviderSetting reports whether the key belongs to the provider. Only the provider knows what it means.
func (e Environment) isProviderSetting(key string) bool {
	name, own := strings.CutPrefix(key, e.Provider+".")
	return own && settingNamePattern().MatchString(name)
}

// SetTools records the binary that agents must run.
func (tx *Tx) SetTools(name string) error {
	return tx.changeEnvironment(func(e *Environment) { e.Tools = name })
}

// changeEnvironment reads the environment's record, calls change with it, and writes it.
func (tx *Tx) changeEnvironment(change func(e *Environment)) error {
	e, err := tx.Environment()
	if err != nil {
		return err
	}
	change(&e)
	return tx.keys.Put(keys.Environment, e)
}

// validate checks all settings of a new environment.
func (e Environment) validate() error {
	if e.Name == "" || e.UUID == "" || e.Provider == "" || e.DefaultSeries == "" {
		return fmt.Errorf("name %q, uuid %q, provider %q and default series %q must not be empty",
			e.Name, e.UUID, e.Provider, e.DefaultSeries)
	}

	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		if err := e.checkSetting(key, e.Config[key]); err != nil {
			return err
		}
	}

	return nil
}

// checkSetting returns an error if the key is unknown or the value invalid. It accepts every value for a key of
// the provider, which checks its keys itself, and for a setting of Juju that has no effect here.
func (e Environment) checkSetting(key, value string) error {
	if e.isProviderSetting(key) || IsJujuSetting(key) {
		return nil
	}

	switch key {
	case "name", "uuid", "provider", "default-series":
		return charm.Invalidf("%s cannot be set: bootstrap decides it", key)
	}

	ok, want := checkSettingValue(key, value)
	if want == "" {
		return charm.Invalidf("unknown model setting %q; the settings are: %s, and %s.KEY for the provider",
			key, strings.Join(settingNames(), ", "), e.Provider)
	}
	if !ok {
		return charm.Invalidf("invalid %s %q: want %s", key, value, want)
	}

	return nil
}

// checkSettingValue reports whether the value is valid for the key. want describes the valid values; it is
// empty if the key is unknown.
func checkSettingValue(key, value string) (ok bool, want string) {
	switch key {
	case AllowOtherSeries, RetryHooks, ResolvedSkips:
		return value == "true" || value == "false", "true or false"

	case StatusInterval, HookTimeout:
		d, err := time.ParseDuration(value)
		return err == nil && d >= 0, "a duration such as 5m or 90s, or 0 for never"

	case CharmHTTPProxy, CharmHTTPSProxy, CharmFTPProxy, CharmNoProxy:
		isLine := utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
		return isLine && len(value) <= maxProxyValue, fmt.Sprintf("one line of text, at most %d bytes", maxProxyValue)

	case HookConcurrency:
		n, err := strconv.Atoi(value)
		return err == nil && n > 0, "a number from 1"

	case ProviderSHA256:
		return sha256Pattern().MatchString(value), "64 hexadecimal digits"

	case CharmhubURL:
		u, err := url.Parse(value)
		isWeb := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		return isWeb && u.Host != "", "a URL that begins with http:// or https://"

	case HarvestMode:
		return slices.Contains(harvestModes(), value), strings.Join(harvestModes(), ", ")
	}

	return false, ""
}

// maxProxyValue limits a proxy setting, in bytes, since the value becomes an environment variable of each
// hook.
const maxProxyValue = 16 << 10

// CheckDefault returns an error if the setting cannot be a default for all environments of a host, or if the
// value is invalid. An empty value means no default, and is valid for every setting that can have one.
func CheckDefault(key, value string) error {
	switch {
	case key == ProviderSHA256:
		return charm.Invalidf("%s cannot have a default: bootstrap decides it", key)
	case strings.Contains(key, "."):
		return charm.Invalidf("%s cannot have a default: give it to juju bootstrap, as --config %s=VALUE", key, key)
	case value == "" && slices.Contains(settingNames(), key):
		return nil
	}

	// The key has no dot, so it is not a setting of any provider. The provider's name does not matter.
	return Environment{Provider: "PROVIDER"}.checkSetting(key, value)
}

var sha256Pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{64}$`)
})

// settingNamePattern matches the part of a provider's setting after "PROVIDER.".
var settingNamePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9]*([.-][a-z0-9]+)*$`)
})

// settingNames lists the keys of Environment.Config that this binary knows, without those of providers.
func settingNames() (names []string) {
	for _, s := range EnvironmentSettings() {
		names = append(names, s.Key)
	}
	return names
}

// Harvest selects the instances that the provisioner stops. It is the value of the setting HarvestMode.
//
// An instance's machine is gone if the machine is dead or was removed. Machine ids are never used again. An
// instance is unknown if it names a machine that never existed, or a machine that has a different instance.
// The provisioner never touches instances of other environments.
type Harvest string

// The modes. In every mode, the provisioner removes the records of dead machines. If the mode does not stop
// their instances, these keep running until the operator stops them or sets a mode that does.
const (
	HarvestDestroyed Harvest = "destroyed" // instances of machines that are gone; the default
	HarvestUnknown   Harvest = "unknown"   // unknown instances
	HarvestAll       Harvest = "all"       // both kinds
	HarvestNone      Harvest = "none"      // no instances
)

// harvestModes lists the values of a Harvest.
func harvestModes() []string {
	return []string{string(HarvestDestroyed), string(HarvestUnknown), string(HarvestAll), string(HarvestNone)}
}

// StopsGone reports whether the provisioner stops instances of machines that are gone.
func (h Harvest) StopsGone() bool { return h == HarvestDestroyed || h == HarvestAll }

// StopsUnknown reports whether the provisioner stops unknown instances.
func (h Harvest) StopsUnknown() bool { return h == HarvestUnknown || h == HarvestAll }

// Harvest returns the environment's harvest mode.
func (e Environment) Harvest() Harvest {
	return Harvest(cmp.Or(e.Config[HarvestMode], string(HarvestDestroyed)))
}
