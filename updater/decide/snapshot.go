package decide

import (
	"slices"
	"strings"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Snapshot has what the leader has read at one revision, with what it has observed.
type Snapshot struct {
	Config     record.Config
	OwnVersion string // the version of this updater
	Servers    []int  // registered boot servers
	Release    string // newest acceptable version; "" is none
	// Published has the digests of a release, as the leader has found them last; nil: not known.
	Published *record.Published
	Refused   record.Refusals   // as the leader has found at its last look
	Withdrawn *record.Withdrawn // servers have a release that is published no more; nil: no
	// CheckFailure is why the last look for releases failed; nil: it did not.
	CheckFailure *record.CheckFailure
	Needs        *record.Needs  // what a release needs, as the leader has found last; nil: not known
	ToldNoRoom   *record.NoRoom // the release for which there was no room, once that was reported
	Target       *record.Target
	Pause        *record.Pause
	Recovery     *record.Recovery
	HandedOver   *record.HandOver // when the last leader made way that did not die; nil: none did
	Current      *record.Request
	Gate         record.Gate    // the one that was opened last, perhaps for another request
	Entry        record.History // the history's entry of Current
	LastID       int            // the number of the history's last entry
	LastTo       string         // and its version, if there is no Current
	Workers      map[int]record.Status
	Contents     map[string]record.Contents
	Hurry        bool // the next update does not wait for the window
	Repair       *record.Repair
	Degraded     record.Degraded // as the leader has written it last
	Unseen       []int           // registered servers of which no worker was ever seen
	Inventories  map[int]record.Inventory
	Present      map[int]record.Presence
	Twins        map[int]record.Twin // hosts that go by the LRN of another one, and do nothing
	// Activities hold what workers say that they are doing. No decision is conditional on it.
	Activities map[int]record.Activity
	// Absent holds since when the leader has seen no presence of servers, without those
	// that are present.
	Absent map[int]time.Time
	// HandingOver holds since when the leader has seen servers wait for the version that
	// they have installed.
	HandingOver map[int]time.Time
	// StageSince is when the leader has first seen the request at its present stage; zero: it
	// does not know. If Witnessed, it has seen the stage before, too, so that this is when
	// something has moved last, by its own clock.
	StageSince time.Time
	Witnessed  bool
	// WaitedBefore is for how long nothing had moved by then, as another leader has recorded.
	WaitedBefore time.Duration
}

// Verb names what an Action does.
type Verb string

// The verbs of Next.
const (
	Wait  Verb = "wait"  // until something changes, or the time has come
	Start Verb = "start" // make a request
	// Open the gate of a step. It is conditional on Current only, since a server that has come to a step
	// stays there.
	Open   Verb = "open"
	Stop   Verb = "stop"   // stop the request, and report that
	Warn   Verb = "warn"   // report servers that are missing or back, or what is degraded
	Slow   Verb = "slow"   // report that nothing has moved for a while
	Note   Verb = "note"   // record for the next leader for how long nothing has moved
	Finish Verb = "finish" // report that all is done
)

// Action is the one thing that the leader does next.
type Action struct {
	Verb    Verb
	Until   time.Time // Wait only; zero: whenever something changes
	Why     string    // for operators
	Changes []updater.Change
}

func newWait(until time.Time, why string) Action { return Action{Verb: Wait, Until: until, Why: why} }

// Load reads the leader's and the operators' snapshot; own is this program's version. In
// an Update the commit becomes conditional on everything that it has read, except
// presences, inventories and claims. Keys below one prefix are read together.
func Load(v *keyspace.View, own string) (s Snapshot, err error) {
	s = Snapshot{OwnVersion: own}
	fill := snapshotReader{view: v}
	s.Config, fill.err = updater.LoadConfig(v)
	infos := fill.list(keys.Infos)

	statuses := fill.list(keys.Statuses)
	s.Servers = registeredServers(infos)
	fill.decodeKey(infos, keys.Release, &s.Release)
	fill.decodeKey(infos, keys.Published, &s.Published)
	fill.decodeKey(infos, keys.Refused, &s.Refused)
	fill.decodeKey(infos, keys.Withdrawn, &s.Withdrawn)
	fill.decodeKey(infos, keys.CheckFailure, &s.CheckFailure)
	fill.decodeKey(infos, keys.Needs, &s.Needs)
	fill.decodeKey(infos, keys.NoRoom, &s.ToldNoRoom)
	fill.decodeKey(infos, keys.Target, &s.Target)

	s.Hurry = fill.decodeKey(infos, keys.Hurry, new(string))
	fill.decodeKey(infos, keys.Repair, &s.Repair)
	fill.decodeKey(infos, keys.Degraded, &s.Degraded)
	fill.peekLiveness(&s)
	fill.decodeKey(infos, keys.Pause, &s.Pause)
	fill.decodeKey(infos, keys.Recovery, &s.Recovery)
	fill.decodeKey(infos, keys.HandedOver, &s.HandedOver)
	fill.decodeKey(statuses, keys.Current, &s.Current)
	fill.decodeKey(statuses, keys.Gate, &s.Gate)

	if fill.err == nil {
		s.Workers, fill.err = updater.DecodeByLRN[record.Status](statuses, keys.Workers)
	}
	s.Contents = fill.readContents()
	fill.readLastEntry(&s)
	return s, fill.err
}

// peekLiveness reads the workers' records about themselves, and which servers' workers were never seen. It
// makes no commit conditional on them.
func (r *snapshotReader) peekLiveness(s *Snapshot) {
	if r.err == nil {
		s.Inventories, r.err = updater.PeekServers[record.Inventory](r.view, keys.Inventories)
	}
	if r.err == nil {
		s.Present, r.err = updater.PeekServers[record.Presence](r.view, keys.Presences)
	}

	if r.err == nil {
		s.Twins, r.err = updater.PeekServers[record.Twin](r.view, keys.Twins)
	}

	var absent []int
	for _, lrn := range s.Servers {
		if _, isAlive := s.Present[lrn]; !isAlive {
			absent = append(absent, lrn)
		}
	}
	if r.err != nil || len(absent) == 0 {
		return
	}

	var claims []keyspace.KeyValue
	claims, r.err = r.view.ListUnguarded(keys.Claims) // they are long
	s.Unseen = slices.DeleteFunc(absent, func(lrn int) bool {
		return slices.ContainsFunc(claims, func(kv keyspace.KeyValue) bool { return kv.Key == keys.Claim(lrn) })
	})
}

func registeredServers(infos []keyspace.KeyValue) (lrns []int) {
	for _, kv := range infos {
		if lrn, ok := record.ParseServerKey(keys.BootServers, kv.Key); ok {
			lrns = append(lrns, lrn)
		}
	}
	return record.SortServers(lrns)
}

// readContents reads the contents' records by name.
func (r *snapshotReader) readContents() map[string]record.Contents {
	found := map[string]record.Contents{}
	for _, kv := range r.list(keys.AllContents) {
		name := strings.TrimPrefix(kv.Key, keys.AllContents)
		found[name], r.err = keyspace.Decode[record.Contents](kv)
		if r.err != nil {
			return nil
		}
	}

	return found
}

// readLastEntry reads the history's entry of the current request. Only without a request does it read the
// whole history.
func (r *snapshotReader) readLastEntry(s *Snapshot) {
	if s.Current != nil {
		s.LastID = s.Current.ID
		if r.err == nil {
			s.Entry, _, r.err = keyspace.Load[record.History](r.view, keys.History(s.Current.ID))
		}
		return
	}

	if kvs := r.list(keys.AllHistory); r.err == nil && len(kvs) > 0 {
		var h record.History
		r.err = keyspace.DecodeInto(kvs[len(kvs)-1], &h)
		s.LastID = h.ID
		s.LastTo = h.To
	}
}

// snapshotReader keeps its first error, and reads nothing after that.
type snapshotReader struct {
	view *keyspace.View
	err  error
}

func (r *snapshotReader) list(prefix string) (kvs []keyspace.KeyValue) {
	if r.err == nil {
		kvs, r.err = r.view.List(prefix)
	}
	return kvs
}

// decodeKey decodes one of the listed keys into doc, which it leaves alone if the key is absent.
func (r *snapshotReader) decodeKey(kvs []keyspace.KeyValue, key string, doc any) (found bool) {
	i := slices.IndexFunc(kvs, func(kv keyspace.KeyValue) bool { return kv.Key == key })
	if r.err != nil || i < 0 {
		return false
	}
	r.err = keyspace.DecodeInto(kvs[i], doc)
	return true
}
