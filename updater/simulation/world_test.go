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

// world is a fleet of boot servers with their workers and updaters, a store, and a clock that jumps
// from one event to the next. Its seed determines everything that happens in it.
type world struct {
	r        *rand.Rand
	store    *simStore
	now      time.Time
	servers  []*host
	leader   *host // the leader of the updaters; nil if there is none
	memory   *decide.Observations
	steady   time.Duration // how far the leader's clock is off while an update runs
	present  map[int]record.Presence
	manifest release.Manifest
	events   []*event
	calm     bool // faults have ended

	builds map[string]build // the builds of tags, except the first of each
	blind  bool             // digests are unknown

	mutation    string    // the promise that the product breaks; "" for none
	sourceDown  time.Time // until when lookups for releases fail
	outageTold  bool      // their failure was reported
	lookedBy    *host     // the leader that has failed to look since then, if it is still the same and its clock was not set
	lookedSkew  time.Duration
	lookedSince time.Time

	once        map[string]lock // the server that brings contents
	ran         map[string]string
	reached     map[[2]int]int // the servers' progress, by request and server
	reports     map[string]int // terminal alerts by request and attempt
	attempts    map[string]bool
	downgrades  map[string]bool // requested downgrades
	movedAt     time.Time       // when a server or the leader last made progress
	changedAt   time.Time       // since when no worker can go on with an older request
	ends        int             // terminal reports
	steprun     int             // steps begun
	faults      map[string]int  // the faults, for the report
	violations  []string
	trace       []string
	tracing     bool
	nextRelease int
}

// host is one boot server: its disk, its processes and its connections.
type host struct {
	lrn       int
	installed build // on the disk
	byHand    bool  // by an operator, and not its worker
	form      string
	inventory record.Inventory // its worker's last record
	former    bool             // its worker does not check health
	dead      bool             // permanently
	cut       bool             // from the store
	cutSince  time.Time
	connected time.Time     // since when it can reach the store
	hung      time.Time     // until when its processes hang
	hungSince time.Time     // and since when
	skew      time.Duration // the error of its clock
	journal   worker.Journal
	disk      worker.Journal // the part of the journal that is on the disk
	members   map[string]*member

	worker  process
	updater process
	effect  *effect

	current *record.Request // as far as its worker knows
	gate    record.Gate
	status  *record.Status
	timeout time.Duration
	all     map[int]record.Status
	looked  time.Time
	moves   int
	movedAt time.Time
	allAt   time.Time
}

// process is one process: up with a version, or down.
type process struct {
	up bool
	build
	epoch int // counts its starts; actions of earlier ones are void
	wake  *event
	began time.Time     // by the world's clock
	off   time.Duration // its own time runs steadily from its server's clock at that moment
}

// member is a component on one server.
type member struct {
	version   string
	up        bool
	updating  bool      // down because of an update
	ill       bool      // down, but not because of an update
	told      bool      // and was reported
	seenSince time.Time // since when the leader can know of it
	given     bool      // up: its server was unregistered in between, so its turn is gone
}

// lock is held by a server until it dies or is cut off for a lease's length.
type lock struct {
	holder *host
	epoch  int
}

// event is an action at a time. A nil do is void.
type event struct {
	at time.Time
	do func()
}

const (
	leaseTTL   = 10 * time.Second
	simTimeout = 3 * time.Minute
	hearing    = time.Second // the longest time until a change is known
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

// chance returns true once in n times while things can break.
func (w *world) chance(n int) bool { return !w.calm && w.r.IntN(n) == 0 }

// run runs events until done or until the time is over.
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

// publish makes the next release known.
func (w *world) publish() {
	v := "1.0-" + strconv.Itoa(w.nextRelease)
	w.nextRelease++
	w.logf("release %s", v)
	if w.store.config().Env != record.EnvNone {
		w.commit([]updater.Change{updater.Put(keys.Release, v)})
	}
}
