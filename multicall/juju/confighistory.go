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

// setOptions changes options of a service, and records the change with the operator's name in the service's
// history. changed are the options whose values differ from before. If there are none, it records nothing.
func setOptions(tx *state.Tx, service string, changes map[string]any) (changed []string, err error) {
	changed, err = tx.SetConfig(service, changes)
	if err != nil {
		return changed, err
	}
	if len(changed) == 0 {
		return changed, nil
	}
	return changed, recordOptions(tx, service, changed)
}

// recordOptions records in the service's history that the operator has set the options now.
func recordOptions(tx *state.Tx, service string, options []string) error {
	return tx.NoteConfigChange(service, state.ConfigChange{At: time.Now(), By: callerName(), Options: options})
}

// callerName returns the operator's name, as USER@HOST, for people to read. The name is not verified. Under
// sudo, USER is the user who called sudo.
func callerName() string {
	uid := "uid " + strconv.Itoa(os.Getuid())
	name := cmp.Or(os.Getenv("SUDO_USER"), os.Getenv("LOGNAME"), os.Getenv("USER"), uid)
	host, _ := os.Hostname()
	return name + "@" + host
}

// optionChange is a [state.ConfigChange] as juju config --history prints it.
type optionChange struct {
	At      time.Time `yaml:"at" json:"at"`
	By      string    `yaml:"by" json:"by"`
	Options []string  `yaml:"options" json:"options"`
}

// showHistory prints who has set which options of the service, with the latest change first. It returns a usage
// error if the command line also names options or files.
func (c configCmd) showHistory(o *operator) error {
	if len(c.Words) > 0 || len(c.File)+len(c.Reset) > 0 {
		return console.Usage(fmt.Errorf("--history only shows who has set options of %q, and cannot be used with options", c.Service))
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
