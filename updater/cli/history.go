package cli

import (
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/updater"
	"bijou/updater/record"
)

type historyCmd struct {
	N      int    `arg:"" optional:"" default:"10" help:"How many, the newest last; 0 is all."`
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

// Run lists updates.
func (c historyCmd) Run(o *operator) error {
	if c.N < 0 {
		return console.Usage(fmt.Errorf("%d is no number of updates", c.N))
	}
	all := []record.History{}
	err := o.view(func(v *state.KeyView) error {
		all = all[:0]
		kvs, err := v.List(updater.Keys().AllHistory())
		if c.N > 0 {
			kvs = kvs[max(0, len(kvs)-c.N):]
		}
		for _, kv := range kvs {
			var h record.History
			if err := kv.Decode(&h); err != nil {
				return err
			}
			all = append(all, h)
		}
		return err
	})
	if err != nil {
		return err
	}
	if c.Format != "text" {
		return o.encode(c.Format, all)
	}
	return historyTable(all, time.Now()).Write(o.streams.Out, console.Coloured(o.streams.Out))
}

func historyTable(all []record.History, now time.Time) *console.Table {
	table := console.NewTable("ID", "STARTED", "TOOK", "BY", "FROM", "TO", "SERVERS", "RESULT", "WHY")
	for _, h := range all {
		by := h.By
		if h.Who != "" {
			by += " (" + h.Who + ")"
		}
		end := now
		if h.EndedAt != nil {
			end = *h.EndedAt
		}
		table.Add(resultColour(h.Result), fmt.Sprint(h.ID), h.StartedAt.Format(time.RFC3339), took(end.Sub(h.StartedAt)), by, orDash(h.From), h.To,
			record.ListServers(h.Servers), h.Result, h.Why)
	}
	return table
}

func resultColour(result string) console.Colour {
	switch result {
	case record.Stopped:
		return console.Red
	case record.Running:
		return console.Yellow
	}
	return ""
}

// took is a duration as people say it.
func took(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return d.Truncate(time.Second).String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
