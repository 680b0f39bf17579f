package neco

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/decide"
	"bijou/updater/record"
)

// judgeFleet takes the findings of the leader, which has watched for long enough to know;
// without a leader it judges by the present moment.
func (d *statusDoc) judgeFleet(s decide.Snapshot, now time.Time) {
	alive := 0
	for i, server := range d.Servers {
		inventory := s.Inventories[server.LRN]
		if server.Alive {
			alive++
			d.Servers[i].Seen = &now
		} else if !inventory.At.IsZero() {
			d.Servers[i].Seen = &inventory.At
		}
	}
	d.Findings = s.Degraded.Findings
	runs := s.Current != nil && !s.Current.Ended()
	switch {
	case len(s.Servers) == 0 || d.Leader != nil && (runs || len(d.Findings) == 0):
		d.Findings = nil
		return
	case d.State == stopped || runs && alive > 0:
		return
	case d.Leader != nil:
		d.Why = fmt.Sprintf("not all is as the last update left it (%d findings)", len(d.Findings))
	default:
		s.Absent = map[int]time.Time{}
		for _, lrn := range s.Servers {
			if _, here := s.Present[lrn]; !here {
				s.Absent[lrn] = time.Time{}
			}
		}
		d.Findings = s.Findings(now)
		if d.Why = "no neco-updater leads: nothing begins, and no alert is sent"; alive == 0 {
			d.Why = "no neco-updater and no neco-worker is alive"
		}
	}
	d.State = degraded
}

func (d statusText) writeFindings(line func(name, format string, args ...any)) {
	for _, f := range d.doc.Findings {
		line("finding", "%s; since %s", f, f.Since.Format(time.RFC3339))
	}
}

func (d statusText) formatSeen(s serverDoc) string {
	switch {
	case s.Alive:
		return "now"
	case s.Seen == nil:
		return "never"
	}
	return formatDuration(d.now.Sub(*s.Seen)) + " ago"
}

func (d statusText) hasFinding(lrn int) bool {
	return slices.ContainsFunc(d.doc.Findings, func(f record.Finding) bool { return f.Server == lrn })
}
