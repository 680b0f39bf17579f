package neco

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/updater/record"
)

type configGetCmd struct {
	Key string `arg:"" help:"The key."`
}

// Run prints the stored value, or else the default. It returns an error if there is neither, except for tag-prefix,
// whose value can be empty. It also prints the value of an unknown key that is stored.
func (c configGetCmd) Run(o *operator) error {
	stored, err := o.readSettings()
	if err != nil {
		return err
	}

	setting, err := record.FindSetting(c.Key)
	if err != nil {
		value, isStored := stored[c.Key]
		if !isStored {
			return console.Usage(err)
		}
		o.note("stored, but unknown to this version: %s", c.Key)
		return o.print(value + "\n")
	}

	value, isStored := stored[setting.Key]
	if !isStored {
		value = setting.Default
	}
	// Only tag-prefix can have an empty value.
	if value == "" && setting.Key != "tag-prefix" {
		return console.Hint(fmt.Errorf("%s is not set", setting.Key),
			fmt.Sprintf("to set it (%s): neco config set %s VALUE", setting.Help, setting.Key))
	}

	return o.print(value + "\n")
}
