package record

import "time"

// Contents is the result of what one server did for all, in contents/<name>.
type Contents struct {
	Version string `json:"version"`
	Success bool   `json:"success"`

	Plan    string `json:"plan,omitempty"`    // the digest of the plan that asked for it
	Server  int    `json:"server,omitempty"`  // who did it
	Message string `json:"message,omitempty"` // why it failed
}

// Presence says that a worker lives, which version it is, and whose it is.
type Presence struct {
	Version string `json:"version"`
	// Server is the place that the worker works from, its host's machine-id and its
	// folder, whatever LRN it was given, and Host the host's name.
	Server string `json:"server,omitempty"`
	Host   string `json:"host,omitempty"`
	Digests
}

// Turn says which server may take its member of a rolling component down. It
// is held without a lease until that member is well again: the turn of a server
// that died half-way is nobody else's until an operator unregisters it.
type Turn struct {
	Server  int `json:"server"`
	Request int `json:"request"` // at which it was taken
}

// Target is a version that an operator asked for. It is what is offered until a
// release appears that is newer than Passed, the newest one when it was asked for.
type Target struct {
	Version   string `json:"version"`
	Downgrade bool   `json:"allow-downgrade,omitempty"`
	Passed    string `json:"passed,omitempty"`
	Sums      string `json:"sums,omitempty"` // the digest of its SHA256SUMS then
	Who       string `json:"who,omitempty"`
}

// CheckFailure says why the last look for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Refused is the release that is not taken because of that, once it was told.
	Refused string `json:"refused,omitempty"`
}

// Pause keeps updates from starting; one that runs goes on.
type Pause struct {
	Until *time.Time `json:"until,omitempty"` // nil: until resumed
	Why   string     `json:"why,omitempty"`
}

// On tells if the pause holds at that time.
func (p Pause) On(now time.Time) bool { return p.Until == nil || now.Before(*p.Until) }

// Recovery says that an operator (or an updater's restart) has cleared a stopped
// update and waits for it to be made again, whatever the maintenance window.
type Recovery struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Was is the version that the servers had before the update that was cleared, the
	// last that succeeded; "" if there was none. Failed is the one they went to.
	Was    string `json:"was,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// The results in a History.
const (
	Running   = "running"
	Succeeded = "succeeded"
	Stopped   = "stopped"
	Recovered = "recovered" // stopped, and made again as another request
)

// History is one update, kept for good. What it says of its end is its last attempt's.
type History struct {
	ID        int        `json:"id"`
	By        string     `json:"by"`            // "release", "operator", "servers" (the list changed), "recover"
	Who       string     `json:"who,omitempty"` // whose wish it was, if somebody's
	From      string     `json:"from,omitempty"`
	To        string     `json:"to"`
	Servers   []int      `json:"servers"`
	Result    string     `json:"result"`
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that it was stopped for
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	Attempts  []Attempt  `json:"attempts,omitempty"` // all, the oldest first
}

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
	AlertTest      = "test"
)

// Terminal tells if alerts of the kind report an update's end.
func Terminal(kind string) bool { return kind == AlertSucceeded || kind == AlertStopped }

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
