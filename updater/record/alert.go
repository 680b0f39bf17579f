package record

import "time"

// The kinds of an Alert.
const (
	AlertStarted   = "started"
	AlertSucceeded = "succeeded"
	AlertStopped   = "stopped"
	// AlertMissing reports that no worker is alive on a server. The update continues.
	AlertMissing = "missing"
	// AlertSlow reports that an update has made no progress for a while. The update continues.
	AlertSlow = "slow"
	// AlertTwin reports that two hosts use the LRN of one server.
	AlertTwin = "twin"
	// AlertReplaced reports that the files of an installed release were replaced.
	AlertReplaced = "replaced"
	// AlertRefused reports that the next release cannot be fetched or installed. No update begins.
	AlertRefused = "refused"
	// AlertDegraded reports that a server has changed since the last update.
	AlertDegraded = "degraded"
	// AlertNoReleases reports that checks for releases have failed for a long time or work again, or that the
	// installed release is newer than all published ones.
	AlertNoReleases = "no-releases"
	AlertTest       = "test"
)

// Alert is a message to operators. It is written to the outbox in the same transaction as the change that it
// reports, and sent at least once.
type Alert struct {
	// ID contains the request, attempt and kind, so that the same event always has the same key.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Cluster is the name in the configuration at the time of sending.
	Cluster string `json:"cluster,omitempty"`
	Request int    `json:"request,omitempty"`
	Version string `json:"version,omitempty"`
	// Servers are the servers at fault, or all servers of the update if the update has not failed.
	Servers []int     `json:"servers,omitempty"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}
