package neco

import (
	"cmp"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type historyCmd struct {
	N      int    `arg:"" optional:"" default:"10" help:"The number of updates to list, the newest last; 0 is all."`
	Audit  bool   `help:"List all changes by operators instead: who made each, when, and why."`
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

// Run prints the newest updates or, with --audit, the newest changes by operators. If the number of entries is
// 0, it prints all of them.
func (c historyCmd) Run(o *operator) error {
	if c.N < 0 {
		return console.Usage(fmt.Errorf("invalid number of updates %d: want 0 or more", c.N))
	}
	if c.Audit {
		audits, err := readNewest[record.Audit](o, keys.Audits, c.N)
		if err != nil {
			return err
		}
		return o.printTable(c.Format, audits, auditTable(audits))
	}

	updates, err := readNewest[record.History](o, keys.AllHistory, c.N)
	if err != nil {
		return err
	}

	return o.printTable(c.Format, updates, historyTable(updates, time.Now()))
}

// readNewest does what listNewest does, in one view of the fleet's store.
func readNewest[T any](o *operator, prefix string, n int) ([]T, error) {
	return read(o, func(v *keyspace.View) ([]T, error) { return listNewest[T](v, prefix, n) })
}

// listNewest returns the newest n records below the prefix, or all records if n is 0. The newest record is
// the last.
func listNewest[T any](v *keyspace.View, prefix string, n int) ([]T, error) {
	kvs, err := v.List(prefix)
	if err != nil {
		return nil, err
	}
	// The keys sort by number, so the newest records are the last.
	if n > 0 {
		kvs = kvs[max(0, len(kvs)-n):]
	}

	records := []T{}
	for _, kv := range kvs {
		r, err := keyspace.Decode[T](kv)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}

	return records, nil
}

// auditTable returns a table with a line for each change by an operator.
func auditTable(audits []record.Audit) *console.Table {
	table := console.NewTable("ID", "AT", "WHO", "WHAT", "DETAIL", "WHY")
	for _, a := range audits {
		table.Add(console.Plain, fmt.Sprint(a.ID), a.At.Format(time.RFC3339), a.Who, a.What, a.Detail, a.Why)
	}
	return table
}

// historyTable returns the table of updates. Each earlier attempt of an update has a row above the update's own.
func historyTable(updates []record.History, now time.Time) *console.Table {
	table := console.NewTable("ID", "STARTED", "TOOK", "BY", "FROM", "TO", "SERVERS", "RESULT", "WHY")

	for _, h := range updates {
		by := h.By
		if h.Who != "" {
			by += " (" + h.Who + ")"
		}

		addRow := func(id, by string, started time.Time, ended *time.Time, result, why string) {
			end := now
			if ended != nil {
				end = *ended
			}
			colour := map[string]console.Colour{
				record.Stopped: console.Red,
				record.Running: console.Yellow,
			}[result]

			// Left is set if the servers return from a failed version other than From.
			table.Add(colour, id, started.Format(time.RFC3339), formatDuration(end.Sub(started)), by,
				cmp.Or(h.Left, h.From, "-"), h.To, record.ListServers(h.Servers), result, why)
		}

		// The last attempt is shown in the row of the update.
		for _, a := range h.Attempts[:max(0, len(h.Attempts)-1)] {
			addRow(fmt.Sprintf("%d.%d", h.ID, a.Number), cmp.Or(a.Who, "-"), a.StartedAt, a.EndedAt, a.Result,
				a.Why)
		}
		addRow(fmt.Sprint(h.ID), by, h.StartedAt, h.EndedAt, h.Result, h.Why)
	}

	return table
}

// formatDuration returns the duration in whole seconds. A negative duration is 0s.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return d.Truncate(time.Second).String()
}
