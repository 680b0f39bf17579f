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

// readWaiting reads the agents' requests that no provisioner carries out and that have waited for waitThreshold.
func (w *input) readWaiting(v *state.View) error {
	requests, err := v.Requests()
	if err != nil {
		return err
	}
	if len(requests) == 0 {
		return nil
	}

	serves, leads, err := v.LeaderServes()
	if err != nil {
		return err
	}
	if leads && serves {
		// The leader will carry out the requests.
		return nil
	}

	for _, r := range requests {
		if w.Now.Sub(r.Since) >= waitThreshold {
			w.waiting = append(w.waiting, r)
		}
	}
	// A leader that does not carry out requests runs an older binary.
	w.leaderIsOld = leads
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

// addWaiting adds a message about the waiting requests to the provisioner's trouble, which then began no later
// than the oldest request. It does nothing if no request waits.
func (w *input) addWaiting() {
	if len(w.waiting) == 0 {
		return
	}

	var requests []string
	for _, r := range w.waiting {
		requests = append(requests, r.String())
	}

	advice := "juju start on the host of machine 0 starts one"
	if w.leaderIsOld {
		advice = "the running provisioner has an older version; to upgrade it: juju upgrade-model"
	}

	count := fmt.Sprintf("%d requests wait", len(requests))
	if len(requests) == 1 {
		count = "1 request waits"
	}

	oldest := w.waiting[0].Since // w.waiting has the oldest first
	if w.trouble == nil {
		w.trouble = &state.ProvisionerTrouble{Since: oldest}
	}
	if oldest.Before(w.trouble.Since) {
		w.trouble.Since = oldest
	}

	message := fmt.Sprintf("%s for a provisioner (%s): %s", count, joinSome(requests), advice)
	w.trouble.Messages = append(w.trouble.Messages, message)
}

// maxNamed limits the names in a list in a message.
const maxNamed = 5

// joinSome joins the first maxNamed texts, and adds the number of the remaining texts.
func joinSome(texts []string) string {
	if len(texts) > maxNamed {
		// The capacity keeps append from changing the caller's texts.
		texts = append(texts[:maxNamed:maxNamed], fmt.Sprintf("%d more", len(texts)-maxNamed))
	}
	return strings.Join(texts, ", ")
}
