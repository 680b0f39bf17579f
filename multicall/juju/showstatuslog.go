package juju

import (
	"time"

	"bijou/multicall/console"
	"bijou/state/text"
)

type showStatusLogCmd struct{ hookHistoryCmd }

// pastStatus has Juju 3's keys, which are not those of a status that lasts.
type pastStatus struct {
	Status  string    `json:"status" yaml:"status"`
	Message string    `json:"message,omitempty" yaml:"message,omitempty"`
	Since   time.Time `json:"since" yaml:"since"`
	Type    string    `json:"type" yaml:"type"` // juju-unit is its agent's
}

// Run prints what the agent was at and what the charm said, the oldest first.
func (c showStatusLogCmd) Run(o *operator) error {
	runs, running, err := c.readHooks(o)
	if err != nil {
		return err
	}

	all := []pastStatus{}
	for _, r := range runs {
		all = append(all, pastStatus{"executing", "running " + r.Hook, r.Started, "juju-unit"})
		if r.Said != nil {
			all = append(all, pastStatus{r.Said.Status, r.Said.Message, r.Said.Since, "workload"})
		}
		if r.Failure != "" {
			all = append(all,
				pastStatus{"error", "hook failed: " + r.Hook + ": " + r.Failure, r.Ended, "workload"})
		}
	}

	if running != nil {
		all = append(all, pastStatus{"executing", "running " + running.Name, running.Since, "juju-unit"})
	}
	all = all[max(0, len(all)-c.Count):]
	t := console.NewTable("TIME", "TYPE", "STATUS", "MESSAGE")
	for _, p := range all {
		t.Add(stateColour(p.Status), p.Since.Local().Format(time.DateTime), p.Type, p.Status,
			text.FirstLine(p.Message))
	}

	return o.printTable(c.Format, all, t)
}
