package neco

import (
	"errors"
	"os"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/updater"
	"bijou/updater/record"
)

type notifyCmd struct {
	Test notifyTestCmd `cmd:"" help:"Send a test message to all destinations of alerts."`
}

type notifyTestCmd struct{}

// Run sends the test message, and prints the destinations that have received it. If a destination has not
// received it, Run returns an error.
func (notifyTestCmd) Run(o *operator) error {
	config, err := read(o, updater.LoadConfig)
	if err != nil {
		return err
	}

	host, _ := os.Hostname() // empty if it is unknown
	a := record.Alert{
		ID:      "test",
		Kind:    record.AlertTest,
		Message: "a test, sent by " + o.audit.Who + " on " + host,
		At:      time.Now().UTC(),
	}

	names, err := o.parts.Server.Notify(o.ctx, config, a)
	if errors.Is(err, updater.ErrNoReceiver) {
		return console.Hint(err, "neco config set notify.slack URL, or neco config set notify.webhook URL")
	}

	if len(names) > 0 {
		o.note("sent to %s", strings.Join(names, " and "))
	}
	return err
}
