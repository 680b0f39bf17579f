package simulation

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
	"bijou/updater/worker"
)

// world is a fleet of boot servers with their workers and updaters, a store, and a clock that jumps from one
// event to the next. Its seed determines all its events.
type world struct {
	r        *rand.Rand
	store    *simStore
	now      time.Time
	servers  []*host
	leader   *host // the leading updater, or nil
	memory   *decide.Observations
	steady   time.Duration // the error of the leader's clock while an update runs
	present  map[int]record.Presence
	manifest release.Manifest
	events   []*event
	calm     bool // set once the faults have ended

	builds map[string]build // the builds of tags, except the first of each
	blind  bool             // set if digests are unknown

	mutation    string    // the promise that the product breaks; "" for none
	sourceDown  time.Time // the time until which checks for releases fail
	outageTold  bool      // set if the failure was reported
	lookedBy    *host     // the leader whose checks have failed since then, if there was only one and its clock was not set
	lookedSkew  time.Duration
	lookedSince time.Time

	once        map[string]lock // the server that delivers contents
	ran         map[string]string
	reached     map[[2]int]int // the servers' progress, by request and server
	reports     map[string]int // terminal alerts by request and attempt
	attempts    map[string]bool
	downgrades  map[string]bool // requested downgrades
	movedAt     time.Time       // when a server or the leader last made progress
	changedAt   time.Time       // the time since which no worker may continue an older request
	ends        int             // the number of terminal reports
	steprun     int             // the number of steps that were begun
	faults      map[string]int  // the number of faults by kind, for the report
	violations  []string
	trace       []string
	tracing     bool
	nextRelease int
}

// host is one boot server, with its disk, its processes and its connections.
type host struct {
	lrn       int
	installed build // the build on the disk
	byHand    bool  // set if an operator has installed it, and not the worker
	form      string
	inventory record.Inventory // its worker's last record
	former    bool             // set if its worker does not check health
	dead      bool             // set if it is dead permanently
	cut       bool             // set if it cannot reach the store
	cutSince  time.Time
	connected time.Time     // the time since which it can reach the store
	hung      time.Time     // the time until which its processes hang
	hungSince time.Time     // the time since which they hang
	skew      time.Duration // the error of its clock
	journal   worker.Journal
	disk      worker.Journal // the part of the journal that is on the disk
	members   map[string]*member

	worker  process
	updater process
	effect  *effect

	current *record.Request // the request that its worker knows
	gate    record.Gate
	status  *record.Status
	timeout time.Duration
	all     map[int]record.Status
	looked  time.Time
	moves   int
	movedAt time.Time
	allAt   time.Time
}

// process is one process, which is up with a version, or down.
type process struct {
	up bool
	build
	epoch int // the number of starts; actions from before the last start are ignored
	wake  *event
	began time.Time     // the start by the world's clock
	off   time.Duration // the error of its own clock, which starts with the server's time and then runs steadily
}

// member is a component on one server.
type member struct {
	version   string
	up        bool
	updating  bool      // set if it is down because of an update
	ill       bool      // set if it is down for another reason
	told      bool      // set if the illness was reported
	seenSince time.Time // the time since which the leader can know about the illness
	given     bool      // set if its server was unregistered since, so that its turn is gone
}

// lock is a lock that a server holds until it dies or is cut off for the term of a lease.
type lock struct {
	holder *host
	epoch  int
}

// event is an action at a point in time. If do is nil, there is no action.
type event struct {
	at time.Time
	do func()
}

const (
	leaseTTL   = 10 * time.Second
	simTimeout = 3 * time.Minute
	hearing    = time.Second // the longest time until a server knows a change
)

// after schedules an action for later.
func (w *world) after(d time.Duration, do func()) *event {
	e := &event{at: w.now.Add(d), do: do}
	w.events = append(w.events, e)
	return e
}

// between returns a random time from low to high.
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.r.Int64N(int64(high-low)+1))
}

// chance returns true once in n times while faults may happen.
func (w *world) chance(n int) bool { return !w.calm && w.r.IntN(n) == 0 }

// run runs events until done returns true or the time is over.
func (w *world) run(until time.Time, done func() bool) {
	for len(w.violations) == 0 && !done() {
		next := w.soonest()
		if next < 0 || w.events[next].at.After(until) {
			w.now = until
			return
		}
		e := w.events[next]
		last := len(w.events) - 1
		w.events[next] = w.events[last]
		w.events = w.events[:last]
		if e.do != nil {
			w.now = e.at
			e.do()
		}
	}
}

// soonest returns the index of the next event, or -1.
func (w *world) soonest() int {
	next := -1
	for i, e := range w.events {
		if next < 0 || e.at.Before(w.events[next].at) {
			next = i
		}
	}
	return next
}

func (w *world) logf(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%8.2f ", w.now.Sub(simStart()).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) violate(format string, args ...any) {
	w.logf("VIOLATION "+format, args...)
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func simStart() time.Time { return time.Date(2018, 11, 7, 0, 0, 0, 0, time.UTC) }

// newWorld returns a fleet at version 1.0-0, with a release to update to.
func newWorld(seed uint64, manifest release.Manifest, blind bool) *world {
	w := &world{
		r: rand.New(rand.NewPCG(seed, 0)), store: newSimStore(), now: simStart(), manifest: manifest, builds: map[string]build{}, blind: blind,
		memory: decide.NewObservations(false), present: map[int]record.Presence{}, once: map[string]lock{}, ran: map[string]string{}, reached: map[[2]int]int{},
		reports: map[string]int{}, attempts: map[string]bool{}, downgrades: map[string]bool{}, faults: map[string]int{}, nextRelease: 1,
	}
	w.configure(record.EnvProduction, simTimeout)
	for n := range 1 + w.r.IntN(6) {
		w.addServer(n + 1 + 7*w.r.IntN(2)*n)
	}
	w.publish()
	w.after(time.Second, w.housekeep)
	w.after(time.Second, w.lookForReleases)
	w.after(w.between(time.Second, 20*time.Second), w.mischief)
	return w
}

// addServer sets up and registers a boot server at the oldest version.
func (w *world) addServer(lrn int) {
	for _, h := range w.servers {
		if h.lrn == lrn {
			return
		}
	}
	w.faults["server added"]++
	h := &host{lrn: lrn, installed: build{version: "1.0-0"}, byHand: true, form: []string{release.Deb, release.Tarball}[w.r.IntN(2)], former: w.r.IntN(4) == 0, members: map[string]*member{}, connected: w.now, skew: w.anySkew()}
	for _, c := range w.manifest.Components {
		if c.Strategy == release.LeaderOnce {
			continue
		}
		h.members[c.Name] = &member{version: h.installed.plan(h.form).component(c.Name), up: true}
	}
	w.servers = append(w.servers, h)
	w.commit([]updater.Change{updater.Put(keys.BootServer(lrn), struct{}{})})
	w.startWorker(h)
	w.startUpdater(h)
}

// publish publishes the next release.
func (w *world) publish() {
	v := "1.0-" + strconv.Itoa(w.nextRelease)
	w.nextRelease++
	w.logf("release %s", v)
	if w.store.config().Env != record.EnvNone {
		w.commit([]updater.Change{updater.Put(keys.Release, v)})
	}
}
