package neco

import (
	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type configSetCmd struct {
	Key   string `arg:"" help:"The key."`
	Value string `arg:"" help:"The value of the key."`
	Now   bool   `help:"Start the first update without waiting for the update window; with env."`
	reasonFlag
}

// Run stores the setting. If the setting makes this fleet install releases for the first time, Run explains
// when the first update begins.
func (c configSetCmd) Run(o *operator) error {
	setting, err := record.FindSetting(c.Key)
	if err != nil {
		return console.Usage(err)
	}
	value, err := setting.Check(c.Value)
	if err != nil {
		return console.Usage(err)
	}

	var startsUpdates bool
	var config record.Config
	err = o.update(func(tx *keyspace.Tx) error {
		// After a conflict, this function runs again.
		startsUpdates = false
		config = record.Config{}

		// If the snapshot cannot be read, this setting may fix the problem.
		if s, err := decide.Load(tx.View, o.parts.Version); err == nil {
			leavesNone := setting.Key == "env" && value != record.EnvNone && s.Config.Env == record.EnvNone
			startsUpdates = leavesNone && s.LastVersion() == ""
			config = s.Config
		}

		o.setDetail("%s to %q, was %s", setting.Key, setting.Shown(value), previousValue(tx.View, setting.Key))
		if err := putSetting(tx, setting.Key, &value); err != nil {
			return err
		}
		if startsUpdates {
			// Without --now, an earlier request with --now no longer counts.
			return tx.PutOrRemove(keys.Hurry, o.audit.Who, c.Now)
		}

		return nil
	})
	if err != nil {
		return err
	}

	if startsUpdates {
		o.noteFirstUpdate(config, c.Now)
	}

	return nil
}
