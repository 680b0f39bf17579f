package juju

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/sanitize"
)

type hookHistoryCmd struct {
	Unit    string `arg:"" help:"The unit."`
	Count   int    `short:"n" default:"50" help:"At most so many, the last ones."`
	Format  string `enum:"tabular,yaml,json" default:"tabular" help:"How to print: ${enum}."`
	Secrets bool   `name:"show-secrets" help:"Show passwords and other secrets, too, that they wrote."`
}

// Run prints the hooks, the oldest first.
func (c hookHistoryCmd) Run(o *operator) error {
	if c.Count < 1 {
		return console.Usage(fmt.Errorf("-n must be at least 1, not %d", c.Count))
	}
	var runs []state.HookRun
	var running *state.RunningHook
	err := o.view(func(v *state.View) (err error) {
		if err = c.checkUnit(v); err == nil {
			runs, err = v.HookRuns(c.Unit)
			runs = runs[max(0, len(runs)-c.Count):]
		}
		if err == nil {
			running, err = v.Running(c.Unit)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !c.Secrets {
		hideSecrets(runs)
	}
	return o.printTable(c.Format, newHookDocs(runs, running), historyTable(runs, running))
}

// checkUnit tells a unit that was removed from one that never was, as long as its log is kept.
func (c hookHistoryCmd) checkUnit(v *state.View) error {
	_, err := v.Unit(c.Unit)
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}
	lines, lerr := v.Logs(state.LogFilter{Sources: []string{c.Unit}, Last: 1})
	if lerr != nil || len(lines) == 0 {
		return errors.Join(err, lerr)
	}
	return console.Hint(fmt.Errorf("unit %q was removed, and what hooks it has run went with it", c.Unit),
		"its log is still there: juju debug-log --unit "+c.Unit)
}

func hideSecrets(runs []state.HookRun) {
	for i := range runs {
		runs[i].Failure = sanitize.HideSecrets(runs[i].Failure)
		for n, change := range runs[i].Changes {
			runs[i].Changes[n] = sanitize.HideSecrets(change)
		}
	}
}

// historyTable has below each hook a row for each setting that it wrote.
func historyTable(runs []state.HookRun, running *state.RunningHook) *console.Table {
	t := console.NewTable("STARTED", "TOOK", "HOOK", "REMOTE", "EXIT", "MESSAGE")
	for _, r := range runs {
		row, exit := console.Colour(""), strconv.Itoa(r.Exit)
		if r.Failure != "" {
			row = console.Red
		}
		if r.Exit < 0 {
			exit = "-"
		}
		took := r.Ended.Sub(r.Started).Round(time.Millisecond).String()
		t.Add(row, r.Started.Local().Format(time.DateTime), took, r.Hook, r.Remote, exit, r.Failure)
		for _, change := range r.Changes {
			t.Add("", "", "", "", "", "", change)
		}
		if r.More > 0 {
			t.Add("", "", "", "", "", "", fmt.Sprintf("and %d more", r.More))
		}
	}
	if r := running; r != nil {
		t.Add(console.Yellow, r.Since.Local().Format(time.DateTime), "running", r.Name, r.Remote, "-", strings.TrimPrefix(r.HeldBy(), ", "))
	}
	return t
}

type hookDoc struct {
	Hook     string    `yaml:"hook" json:"hook"`
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Started  time.Time `yaml:"started" json:"started"`
	Seconds  float64   `yaml:"seconds" json:"seconds"`
	Exit     int       `yaml:"exit" json:"exit"` // -1: it had no exit code
	Failure  string    `yaml:"failure,omitempty" json:"failure,omitempty"`
	Changes  []string  `yaml:"changes,omitempty" json:"changes,omitempty"`
	More     int       `yaml:"further-changes,omitempty" json:"further-changes,omitempty"`
	Running  bool      `yaml:"running,omitempty" json:"running,omitempty"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"`
}

func newHookDocs(runs []state.HookRun, running *state.RunningHook) []hookDoc {
	past := make([]hookDoc, len(runs))
	for i, r := range runs {
		past[i] = hookDoc{r.Hook, r.Relation, r.Remote, r.Started, r.Ended.Sub(r.Started).Seconds(), r.Exit, r.Failure, r.Changes, r.More, false, ""}
	}
	if r := running; r != nil {
		past = append(past, hookDoc{Hook: r.Name, Relation: r.Relation, Remote: r.Remote, Started: r.Since,
			Seconds: time.Since(r.Since).Seconds(), Exit: -1, Running: true, Holder: r.Holder})
	}
	return past
}
