package record

import "time"

// The kinds of an Alert.
const (
	AlertStarted   = "started"
	AlertSucceeded = "succeeded"
	AlertStopped   = "stopped"
	AlertMissing   = "missing"  // a server has no worker alive; the update goes on
	AlertSlow      = "slow"     // nothing has moved for a while; the update goes on
	AlertTwin      = "twin"     // two servers go by one LRN
	AlertReplaced  = "replaced" // the files of a release that servers have were replaced
	AlertRefused   = "refused"  // the release that servers would take cannot be had or trusted; nothing begins
	AlertDegraded  = "degraded" // something is not as the last update left it
	// AlertNoReleases: releases could not be looked for in a long time, they can be again, or servers
	// have one that is newer than all that are published.
	AlertNoReleases = "no-releases"
	AlertTest       = "test"
)

// Alert is a message to operators. It is written to the outbox in the
// transaction that causes it, and sent at least once.
type Alert struct {
	ID      string    `json:"id"` // of request, attempt and kind: the same event is the same key
	Kind    string    `json:"kind"`
	Cluster string    `json:"cluster,omitempty"` // as the configuration calls it when it is sent
	Request int       `json:"request,omitempty"`
	Version string    `json:"version,omitempty"`
	Servers []int     `json:"servers,omitempty"` // whom it is about: if something is wrong, those at fault
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}
