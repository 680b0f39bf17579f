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
	leader   *host // who leads the updaters; nil is nobody
	memory   *decide.Observations
	steady   time.Duration // how far the leader's time is off while an update runs
	present  map[int]record.Presence
	manifest release.Manifest
	events   []*event
	calm     bool // nothing breaks any more

	builds map[string]build // what tags have, but for the first build of each
	blind  bool             // nobody knows digests

	mutation    string    // which promise the product breaks; "": none
	sourceDown  time.Time // until when no releases can be looked for
	outageTold  bool      // it was reported that they cannot
	lookedBy    *host     // who has looked in vain since then, without another one, and without its clock set
	lookedSkew  time.Duration
	lookedSince time.Time

	once        map[string]lock // who does contents
	ran         map[string]string
	reached     map[[2]int]int // how far servers have come, by request and server
	reports     map[string]int // terminal alerts by request and attempt
	attempts    map[string]bool
	downgrades  map[string]bool // versions to go back to that were asked for
	movedAt     time.Time       // when a server or the leader has got further
	changedAt   time.Time       // since when no worker may go on with an older request
	ends        int             // terminal reports
	steprun     int             // steps begun
	faults      map[string]int  // what broke, for the report
	violations  []string
	trace       []string
	tracing     bool
	nextRelease int
}

// host is one boot server: its disk, its processes and its connections.
type host struct {
	lrn       int
	installed build // on the disk
	byHand    bool  // by somebody else than its worker
	form      string
	inventory record.Inventory // as its worker has written it last
	former    bool             // its worker does not look at what is ill
	dead      bool             // for good
	cut       bool             // from the store
	cutSince  time.Time
	connected time.Time     // since when it has reached the store
	hung      time.Time     // until when its processes hang
	hungSince time.Time     // and since when
	skew      time.Duration // its clock's
	journal   worker.Journal
	disk      worker.Journal // what of it is on the disk
	members   map[string]*member

	worker  process
	updater process
	effect  *effect

	current *record.Request // as far as its worker has heard
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
	epoch int // counts its starts; what an earlier one has begun is void
	wake  *event
	began time.Time     // by the world's clock
	off   time.Duration // its own time goes on evenly from where its server's clock was then
}

// member is a component on one server.
type member struct {
	version   string
	up        bool
	updating  bool      // down because of an update
	ill       bool      // down, and not by an update
	told      bool      // that was reported
	seenSince time.Time // since when the leader can know that
	given     bool      // up: its server was unregistered meanwhile, and its turn is nobody's
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
	hearing    = time.Second // how long changes take to be heard of, at most
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
