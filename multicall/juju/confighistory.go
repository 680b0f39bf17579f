package juju

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

// setOptions changes options of a service, and notes the caller.
func setOptions(tx *state.Tx, service string, changes map[string]any) (changed []string, err error) {
	changed, err = tx.SetConfig(service, changes)
	if err != nil || len(changed) == 0 {
		return changed, err
	}
	return changed, noteOptions(tx, service, changed)
}

func noteOptions(tx *state.Tx, service string, options []string) error {
	return tx.NoteConfigChange(service, state.ConfigChange{At: time.Now(), By: callerName(), Options: options})
}

// callerName returns USER@HOST, for people: nothing checks it. Behind sudo it is the user who called that.
func callerName() string {
	uid := "uid " + strconv.Itoa(os.Getuid())
	name := cmp.Or(os.Getenv("SUDO_USER"), os.Getenv("LOGNAME"), os.Getenv("USER"), uid)
	host, _ := os.Hostname()
	return name + "@" + host
}

// optionChange is a state.ConfigChange as it is shown.
type optionChange struct {
	At      time.Time `yaml:"at" json:"at"`
	By      string    `yaml:"by" json:"by"`
	Options []string  `yaml:"options" json:"options"`
}

// showHistory prints the changes, the latest first.
func (c configCmd) showHistory(o *operator) error {
	if len(c.Words) > 0 || len(c.File)+len(c.Reset) > 0 {
		return console.Usage(fmt.Errorf("--history only shows who has set options of %q, and cannot set any", c.Service))
	}
	config, err := readChosen(o, func(v *state.View) (state.Config, error) { return v.Config(c.Service) })
	if err != nil {
		return err
	}

	changes := []optionChange{}
	for _, change := range slices.Backward(config.History) {
		changes = append(changes, optionChange(change))
	}

	if len(changes) == 0 {
		o.note("no changes of options of %q are recorded", c.Service)
	}
	return o.encode(c.Format, changes)
}
