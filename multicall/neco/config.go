package neco

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

type configCmd struct {
	Set   configSetCmd   `cmd:"" help:"Set one key."`
	Get   configGetCmd   `cmd:"" help:"Show the value of one key."`
	List  configListCmd  `cmd:"" help:"List all keys; secrets are not shown."`
	Unset configUnsetCmd `cmd:"" help:"Put one key back to its default."`
}

type configSetCmd struct {
	Key   string `arg:"" help:"The key."`
	Value string `arg:"" help:"Its value."`
	Now   bool   `help:"With env: the first update does not wait for the update window."`
	reasonFlag
}

func keyHelp() string {
	var b strings.Builder
	for _, s := range record.Settings() {
		def := ""
		if s.Default != "" {
			def = " (" + s.Default + ")"
		}
		fmt.Fprintf(&b, "  %-22s %s%s\n", s.Key, s.Help, def)
	}
	return b.String()
}

func (c configSetCmd) Run(o *operator) error {
	setting, err := record.FindSetting(c.Key)
	if err != nil {
		return console.Usage(err)
	}
	value, err := setting.Check(c.Value)
	if err != nil {
		return console.Usage(err)
	}
	first, config := false, record.Config{}
	err = o.update(func(tx *keyspace.Tx) error {
		if s, err := decide.Load(tx.View, o.parts.Version); err == nil { // else this may put right what cannot be read
			first = setting.Key == "env" && value != record.EnvNone && s.Config.Env == record.EnvNone && s.LastVersion() == ""
			config = s.Config
		}
		o.setDetail("%s to %q, was %s", setting.Key, setting.Shown(value), previousValue(tx.View, setting.Key))
		if err := putSetting(tx, setting.Key, &value); err != nil {
			return err
		}
		if first && c.Now {
			return tx.Put(keys.Hurry, o.audit.Who)
		}
		return nil
	})
	if err == nil && first {
		o.noteFirstUpdate(config, c.Now)
	}
	return err
}

// noteFirstUpdate goes by this program's plan, which may not be the release's.
func (o *operator) noteFirstUpdate(c record.Config, now bool) {
	var all []string
	for _, component := range o.parts.Manifest.Components {
		if component.Strategy == release.StopAll {
			all = append(all, component.Services...)
		}
	}
	when := "as soon as a release is found"
	if c.Window != nil && !now {
		when = "in the update window, or at once with --now"
	}
	o.note("the first update begins %s; it stops %s on all servers at once, and brings all components to what the release says (neco plan)",
		when, cmp.Or(strings.Join(all, ", "), "nothing"))
}

func previousValue(v *keyspace.View, key string) string {
	value, ok, err := keyspace.Load[string](v, keys.Config(key))
	setting, unknown := record.FindSetting(key)
	switch {
	case err != nil || unknown != nil:
		return "what this version cannot read"
	case !ok:
		return "not set"
	}
	return strconv.Quote(setting.Shown(value))
}

// putSetting forgets the known release if it changes where releases come from, so that no
// release of another environment is taken meanwhile.
func putSetting(tx *keyspace.Tx, key string, value *string) error {
	before, err := updater.LoadConfig(tx.View)
	if err != nil {
		return err
	}
	if slices.Contains([]string{"env", "tag-prefix", "github-repository", "github-url", "minisign-public-key"}, key) && changesSetting(before, key, value) {
		tx.Remove(keys.Release, keys.Published, keys.CheckFailure)
	}
	return tx.PutOrRemove(keys.Config(key), value, value != nil)
}

// changesSetting takes nil for the default.
func changesSetting(before record.Config, key string, value *string) bool {
	is := map[string]string{"env": before.Env, "tag-prefix": before.TagPrefix, "github-repository": before.GitHubRepository, "github-url": before.GitHubURL, "minisign-public-key": before.MinisignKey}
	setting, err := record.FindSetting(key)
	to := setting.Default
	if value != nil {
		to = *value
	}
	return err != nil || is[key] != to
}

type configGetCmd struct {
	Key string `arg:"" help:"The key."`
}

func (c configGetCmd) Run(o *operator) error {
	stored, err := o.readSettings()
	if err != nil {
		return err
	}
	setting, err := record.FindSetting(c.Key)
	if value, kept := stored[c.Key]; kept && err != nil {
		o.note("unknown to this version, and kept: %s", c.Key)
		return o.print(value + "\n")
	}
	if err != nil {
		return console.Usage(err)
	}
	value, ok := stored[setting.Key]
	if !ok {
		value = setting.Default
	}
	if value == "" && setting.Key != "tag-prefix" {
		return console.Hint(fmt.Errorf("%s is not set", setting.Key), fmt.Sprintf("to set it (%s): neco config set %s VALUE", setting.Help, setting.Key))
	}
	return o.print(value + "\n")
}

// readSettings leaves out values that cannot be read, and notes their keys. Of a key that this
// version does not know, whatever a newer one has stored is the value.
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
		for _, kv := range kvs {
			key := strings.TrimPrefix(kv.Key, keys.AllConfig)
			value, notText := keyspace.Decode[string](kv)
			_, unknown := record.FindSetting(key)
			switch {
			case notText == nil:
				stored[key] = value
			case unknown != nil && json.Valid(kv.Value):
				stored[key] = string(kv.Value)
			}
		}
		return stored, err
	})
}

type configListCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

func (c configListCmd) Run(o *operator) error {
	stored, err := o.readSettings()
	if err != nil {
		return err
	}
	table := console.NewTable("KEY", "VALUE", "SET", "WHAT IT IS")
	values := map[string]string{}
	for _, s := range record.Settings() {
		value, mark := s.Default, ""
		if own, set := stored[s.Key]; set {
			value, mark = s.Shown(own), "yes"
		}
		values[s.Key] = value
		table.Add("", s.Key, value, mark, s.Help)
		delete(stored, s.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		values[key] = "(not shown)" // it may be a secret
		table.Add("", key, values[key], "yes", "unknown to this version, and kept")
	}
	return o.printTable(c.Format, values, table)
}

type configUnsetCmd struct {
	Key string `arg:"" help:"The key."`
	reasonFlag
}

func (c configUnsetCmd) Run(o *operator) error {
	return o.update(func(tx *keyspace.Tx) error {
		_, set, err := tx.Get(keys.Config(c.Key))
		if err != nil {
			return err
		}
		if !set {
			if _, err := record.FindSetting(c.Key); err != nil { // what another version knows may be there
				return console.Usage(err)
			}
			return errors.New(c.Key + " is not set")
		}
		o.setDetail("%s, was %s", c.Key, previousValue(tx.View, c.Key))
		return putSetting(tx, c.Key, nil)
	})
}

type notifyCmd struct {
	Test notifyTestCmd `cmd:"" help:"Send a test message to wherever alerts go."`
}

type notifyTestCmd struct{}

func (notifyTestCmd) Run(o *operator) error {
	config, err := read(o, updater.LoadConfig)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	a := record.Alert{ID: "test", Kind: record.AlertTest, Message: "a test, sent by " + o.audit.Who + " on " + host, At: time.Now().UTC()}
	names, err := o.parts.Server.Notify(o.ctx, config, a)
	if errors.Is(err, updater.ErrNoReceiver) {
		return console.Hint(err, "neco config set notify.slack URL, or neco config set notify.webhook URL")
	}
	if len(names) > 0 {
		o.note("sent to %s", strings.Join(names, " and "))
	}
	return err
}
