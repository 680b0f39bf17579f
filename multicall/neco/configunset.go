package neco

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type configUnsetCmd struct {
	Key string `arg:"" help:"The key."`
	reasonFlag
}

// Run resets the setting. It accepts an unknown key that is set, since the key may belong to a different version.
func (c configUnsetCmd) Run(o *operator) error {
	return o.update(func(tx *keyspace.Tx) error {
		_, isSet, err := tx.Get(keys.Config(c.Key))
		if err != nil {
			return err
		}
		if !isSet {
			if _, err := record.FindSetting(c.Key); err != nil {
				return console.Usage(err)
			}
			return errors.New(c.Key + " is not set")
		}

		o.setDetail("%s, was %s", c.Key, previousValue(tx.View, c.Key))
		return putSetting(tx, c.Key, nil)
	})
}
