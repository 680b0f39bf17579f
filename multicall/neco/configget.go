package neco

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/updater/record"
)

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
		o.note("stored, but unknown to this version: %s", c.Key)
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
		return console.Hint(fmt.Errorf("%s is not set", setting.Key),
			fmt.Sprintf("to set it (%s): neco config set %s VALUE", setting.Help, setting.Key))
	}

	return o.print(value + "\n")
}
