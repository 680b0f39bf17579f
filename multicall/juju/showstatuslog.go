package juju

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/text"
)

type showStatusLogCmd struct {
	Unit       string `arg:"" help:"The unit."`
	Count      *int   `short:"n" placeholder:"N" help:"Show at most the last N; default 50."`
	Days       int    `placeholder:"N" help:"Show the statuses of the last N days; not with -n or --from-date."`
	FromDate   string `placeholder:"DATE" help:"Show the statuses since this day, such as 2026-02-28; not with -n or --days."`
	Type       string `enum:"unit,juju-unit,workload,application,container,filesystem,juju-container,juju-machine,machine,model,saas,task,volume" default:"unit" placeholder:"TYPE" help:"Show statuses of this type: unit (all), juju-unit (only those of the agent) or workload (only those of the charm); default unit."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
	UTC        bool `name:"utc" help:"Show times in UTC."`
	Secrets    bool `name:"show-secrets" help:"Also show passwords and other secrets that hooks wrote."`
	Updates    bool `name:"include-status-updates" hidden:"" help:"They are always included."`

	colourFlags `embed:""`
}

// maxPastStatuses is how many statuses are shown by default.
const maxPastStatuses = 50

// pastStatus is a past status with Juju 3's keys. A current status has different keys.
type pastStatus struct {
	Status  string    `json:"status" yaml:"status"`
	Message string    `json:"message,omitempty" yaml:"message,omitempty"`
	Since   time.Time `json:"since" yaml:"since"`
	Type    string    `json:"type" yaml:"type"` // "juju-unit" for the unit's agent, or "workload"
}

// Run prints past statuses of the unit's agent and workload, the oldest first. The flags limit their number, time
// and type.
func (c showStatusLogCmd) Run(o *operator) error {
	if c.UTC {
		// This process prints only the log, and then exits.
		time.Local = time.UTC
	}
	since, err := c.since(time.Now())
	if err != nil {
		return console.Usage(err)
	}

	limit := maxPastStatuses
	switch {
	case c.Count != nil:
		limit = *c.Count
	case !since.IsZero():
		// In this case only the time limits the statuses.
		limit = math.MaxInt
	}

	// A hook has several statuses or none of the type, so the limit does not apply to hooks.
	h := hookHistoryCmd{Unit: c.Unit, Count: math.MaxInt, Secrets: c.Secrets}
	runs, running, err := h.readHooks(o)
	if err != nil {
		return err
	}

	statuses := c.choose(pastStatuses(runs, running), since)
	statuses = statuses[max(0, len(statuses)-limit):]
	if c.Format != "tabular" {
		return o.encode(c.Format, statuses)
	}

	width := 0
	if console.IsTerminal(o.streams.Out) {
		width = console.SizeOf(o.streams.Out).Width
	}
	return pastTable(statuses).WriteIn(o.streams.Out, c.canColour(o.streams.Out), width)
}

// since returns the time from which statuses are shown, or zero for all recorded statuses. It returns an error if
// the flags contradict each other, if -n, --days or --from-date has an invalid value, or if bijou does not record
// statuses of the type.
func (c showStatusLogCmd) since(now time.Time) (time.Time, error) {
	given := 0
	for _, isGiven := range []bool{c.Count != nil, c.Days != 0, c.FromDate != ""} {
		if isGiven {
			given++
		}
	}

	_, isRecorded := c.types()
	switch {
	case given > 1:
		return time.Time{}, errors.New("-n, --days and --from-date cannot be used together")
	case c.Count != nil && *c.Count < 1:
		return time.Time{}, fmt.Errorf("-n must be at least 1, not %d", *c.Count)
	case c.Days < 0:
		return time.Time{}, fmt.Errorf("cannot show %d days", c.Days)
	case !isRecorded:
		return time.Time{}, fmt.Errorf("bijou keeps no past statuses of type %q, only of unit, juju-unit and workload", c.Type)
	case c.Days > 0:
		return now.AddDate(0, 0, -c.Days), nil
	case c.FromDate == "":
		return time.Time{}, nil
	}

	from, err := time.ParseInLocation(time.DateOnly, c.FromDate, now.Location())
	if err != nil {
		return from, fmt.Errorf("invalid --from-date %q: want a date, such as 2026-02-28", c.FromDate)
	}
	return from, nil
}

// types returns the types of the statuses to show. recorded is false if bijou does not record statuses of the
// type that --type names.
func (c showStatusLogCmd) types() (shown []string, recorded bool) {
	switch c.Type {
	case "unit":
		return []string{"juju-unit", "workload"}, true
	case "juju-unit", "workload":
		return []string{c.Type}, true
	}
	return nil, false
}

// choose returns the statuses of the chosen types that were set at the given time or later.
func (c showStatusLogCmd) choose(statuses []pastStatus, since time.Time) []pastStatus {
	shown, _ := c.types()
	return slices.DeleteFunc(statuses, func(p pastStatus) bool {
		return p.Since.Before(since) || !slices.Contains(shown, p.Type)
	})
}

// pastStatuses turns hooks into a list of statuses, as Juju's show-status-log prints them. The list has the
// start of each hook, the last workload status that the hook set, if any, and its failure, if any. running is the
// current hook, or nil.
func pastStatuses(runs []state.HookRun, running *state.RunningHook) []pastStatus {
	statuses := []pastStatus{}
	for _, r := range runs {
		statuses = append(statuses, pastStatus{
			Status:  "executing",
			Message: "running " + r.Hook,
			Since:   r.Started,
			Type:    "juju-unit",
		})
		if r.Said != nil {
			statuses = append(statuses, pastStatus{
				Status:  r.Said.Status,
				Message: r.Said.Message,
				Since:   r.Said.Since,
				Type:    "workload",
			})
		}
		if r.Failure != "" {
			statuses = append(statuses, pastStatus{
				Status:  "error",
				Message: "hook failed: " + r.Hook + ": " + r.Failure,
				Since:   r.Ended,
				Type:    "workload",
			})
		}
	}

	if running != nil {
		statuses = append(statuses, pastStatus{
			Status:  "executing",
			Message: "running " + running.Name,
			Since:   running.Since,
			Type:    "juju-unit",
		})
	}
	return statuses
}

// pastTable returns a table with a line for each status.
func pastTable(statuses []pastStatus) *console.Table {
	t := console.NewTable("TIME", "TYPE", "STATUS", "MESSAGE")
	t.PaintOnly("STATUS")
	for _, p := range statuses {
		t.Add(wordColour(p.Status), p.Since.Local().Format(time.DateTime), p.Type, p.Status,
			text.FirstLine(p.Message))
	}
	return t
}
