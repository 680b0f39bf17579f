package neco

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

type configCmd struct {
	Set   configSetCmd   `cmd:"" help:"Set one key."`
	Get   configGetCmd   `cmd:"" help:"Show the value of one key."`
	List  configListCmd  `cmd:"" help:"List all keys; secrets are not shown."`
	Unset configUnsetCmd `cmd:"" help:"Reset one key to its default."`
}

// keyHelp returns the help on all settings, a line for each with its default.
func keyHelp() string {
	var b strings.Builder
	for _, s := range record.Settings() {
		defaultText := ""
		if s.Default != "" {
			defaultText = " (" + s.Default + ")"
		}
		fmt.Fprintf(&b, "  %-22s %s%s\n", s.Key, s.Help, defaultText)
	}

	return b.String()
}

// noteFirstUpdate prints when the first update begins, and which services it stops. It uses this program's
// plan, which may differ from the plan of the release. isNow says that the update does not wait for the window.
func (o *operator) noteFirstUpdate(c record.Config, isNow bool) {
	var stopped []string
	for _, component := range o.parts.Manifest.Components {
		if component.Strategy == release.StopAll {
			stopped = append(stopped, component.Services...)
		}
	}

	when := "as soon as a release is found"
	if c.Window != nil && !isNow {
		when = "in the update window, or at once with --now"
	}
	o.note("the first update begins %s; it stops %s on all servers at the same time, and installs all components of the release; to see its steps: neco plan",
		when, cmp.Or(strings.Join(stopped, ", "), "nothing"))
}

// previousValue returns a setting's value before a change, as the audit record shows it, with secrets hidden. Instead
// of a value, it can return that the setting is not set, or that this version cannot read the value.
func previousValue(v *keyspace.View, key string) string {
	value, ok, err := keyspace.Load[string](v, keys.Config(key))
	setting, settingErr := record.FindSetting(key)
	switch {
	case err != nil || settingErr != nil:
		return "a value that this version cannot read"
	case !ok:
		return "not set"
	}

	return strconv.Quote(setting.Shown(value))
}

// putSetting stores a setting, or removes it if value is nil. If this changes the source of releases, putSetting
// also removes the failure of the last check, and the known release with its digests, so that no release from a
// different source is used in the meantime.
func putSetting(tx *keyspace.Tx, key string, value *string) error {
	before, err := updater.LoadConfig(tx.View)
	if err != nil {
		return err
	}

	if value != nil {
		if err := checkOneSource(before, key); err != nil {
			return err
		}
	}

	if changesSource(before, key, value) {
		tx.Remove(keys.Release, keys.Published, keys.CheckFailure)
	}
	return tx.PutOrRemove(keys.Config(key), value, value != nil)
}

// checkOneSource returns an error if the setting would add a second source of releases. With both, a version of neco
// that does not know release-folder would still use github-repository.
func checkOneSource(before record.Config, key string) error {
	other := ""
	switch {
	case key == "release-folder" && before.GitHubRepository != "":
		other = "github-repository"
	case key == "github-repository" && before.ReleaseFolder != "":
		other = "release-folder"
	default:
		return nil
	}

	err := fmt.Errorf("cannot set %s: only one source of releases can be set, and %s is already set", key, other)
	return console.Hint(err, "to set "+key+" instead, first: neco config unset "+other)
}

// changesSource reports whether the new value changes a setting that selects the releases. A nil value stands for
// the setting's default.
func changesSource(before record.Config, key string, value *string) bool {
	sources := map[string]string{
		"env":                 before.Env,
		"tag-prefix":          before.TagPrefix,
		"github-repository":   before.GitHubRepository,
		"github-url":          before.GitHubURL,
		"release-folder":      before.ReleaseFolder,
		"minisign-public-key": before.MinisignKey,
	}

	current, isSource := sources[key]
	if !isSource {
		return false
	}
	if value != nil {
		return current != *value
	}

	// All keys of sources are settings, so no error is expected. An error counts as a change.
	setting, err := record.FindSetting(key)
	return err != nil || current != setting.Default
}

// readSettings returns the stored settings. It leaves out values that cannot be read, and prints their keys. A
// key that this version does not know can have any value in JSON, since a newer version may have stored it.
func (o *operator) readSettings() (map[string]string, error) {
	return read(o, func(v *keyspace.View) (map[string]string, error) {
		stored := map[string]string{}
		config, err := updater.LoadConfig(v)
		if err != nil {
			return nil, err
		}

		for _, fault := range config.Faults {
			o.note("cannot read the configuration key %s; to remove it: neco config unset KEY", fault)
		}
		kvs, err := v.List(keys.AllConfig)
		if err != nil {
			return nil, err
		}

		for _, kv := range kvs {
			key := strings.TrimPrefix(kv.Key, keys.AllConfig)
			value, textErr := keyspace.Decode[string](kv)
			_, settingErr := record.FindSetting(key)
			switch {
			case textErr == nil:
				stored[key] = value
			case settingErr != nil && json.Valid(kv.Value):
				stored[key] = string(kv.Value)
			}
		}

		return stored, nil
	})
}
