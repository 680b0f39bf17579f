package status

import (
	"fmt"
	"strings"
	"time"

	"bijou/state"
)

// waitThreshold is how long a request must wait before the status mentions it. A leading provisioner usually
// carries out a request in less than a second.
const waitThreshold = 30 * time.Second

// waitsForProvisioner is the message of a unit that waits for a provisioner.
const waitsForProvisioner = "waits for a provisioner"

// readWaiting reads the agents' requests that no provisioner carries out.
func (w *input) readWaiting(v *state.View) error {
	all, err := v.Requests()
	if err != nil || len(all) == 0 {
		return err
	}
	serves, leads, err := v.LeaderServes()
	if err != nil || leads && serves {
		return err
	}

	for _, r := range all {
		if w.Now.Sub(r.Since) >= waitThreshold {
			w.waiting = append(w.waiting, r)
		}
	}
	w.otherLeads = leads
	return nil
}

// isWaiting reports whether the unit waits for a provisioner to remove it, or to add its subordinate.
func (w *input) isWaiting(unit string) bool {
	for _, r := range w.waiting {
		if r.Unit == unit && r.Kind != state.RequestRelationEnd {
			return true
		}
	}
	return false
}

// addWaiting adds the waiting requests to the provisioner's trouble.
func (w *input) addWaiting() {
	if len(w.waiting) == 0 {
		return
	}

	var what []string
	for _, r := range w.waiting {
		what = append(what, r.String())
	}

	toDo := "juju start on the host of machine 0 starts one"
	if w.otherLeads {
		toDo = "the running provisioner has an older version; to upgrade it: juju upgrade-model"
	}

	count := fmt.Sprintf("%d requests wait", len(what))
	if len(what) == 1 {
		count = "1 request waits"
	}

	oldest := w.waiting[0].Since
	if w.trouble == nil {
		w.trouble = &state.ProvisionerTrouble{Since: oldest}
	}
	if oldest.Before(w.trouble.Since) {
		w.trouble.Since = oldest
	}
	w.trouble.Messages = append(w.trouble.Messages, fmt.Sprintf("%s for a provisioner (%s): %s", count, joinSome(what), toDo))
}

// maxNamed limits the names in a list in a message.
const maxNamed = 5

// joinSome joins the first maxNamed texts, and adds the number of the remaining texts.
func joinSome(all []string) string {
	if len(all) > maxNamed {
		all = append(all[:maxNamed:maxNamed], fmt.Sprintf("%d more", len(all)-maxNamed))
	}
	return strings.Join(all, ", ")
}
