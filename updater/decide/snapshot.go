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

// Snapshot is the state that the leader has read at one revision, together with its observations.
type Snapshot struct {
	Config     record.Config
	OwnVersion string // the version of this updater
	Servers    []int  // registered boot servers
	Release    string // newest acceptable version, or ""
	// Published has the digests of the release that servers would install. It is nil if they are unknown.
	Published *record.Published
	Refused   record.Refusals   // found at the leader's last check
	Withdrawn *record.Withdrawn // the installed release, if it is no longer published
	// CheckFailure explains why the last check for releases failed. It is nil if the check succeeded.
	CheckFailure *record.CheckFailure
	Needs        *record.Needs  // the sizes of the next release's files; nil if they are unknown
	ToldNoRoom   *record.NoRoom // the last report about missing space
	Target       *record.Target
	Pause        *record.Pause
	Recovery     *record.Recovery
	// HandedOver records when a leader last gave up its lead without dying. It is nil if no leader has done
	// this.
	HandedOver *record.HandOver
	Current    *record.Request
	Gate       record.Gate    // the gate that was opened last, possibly for another request
	Entry      record.History // the history's entry of Current
	LastID     int            // the number of the history's last entry
	// LastTo is the version of the history's last entry. It is only set if Current is nil.
	LastTo      string
	Workers     map[int]record.Status
	Contents    map[string]record.Contents
	Hurry       bool // the next update does not wait for the window
	Repair      *record.Repair
	Degraded    record.Degraded // the findings that the leader last wrote
	Unseen      []int           // registered servers whose worker was never seen
	Inventories map[int]record.Inventory
	Present     map[int]record.Presence
	Twins       map[int]record.Twin // hosts that use the LRN of another host, and do nothing
	// Activities are the activities that workers report. No decision is conditional on them.
	Activities map[int]record.Activity
	// Absent maps each server without a presence to the time since which the leader has seen none.
	Absent map[int]time.Time
	// HandingOver maps each server that waits for its installed version to start to the time since which
	// the leader has seen it wait.
	HandingOver map[int]time.Time
	// StageSince is when the leader first saw the request at its current stage, or zero if the leader has not
	// seen the stage. If Witnessed is set, the leader has also seen the previous stage. StageSince is then
	// the time of the last progress, by the leader's own clock.
	StageSince time.Time
	Witnessed  bool
	// WaitedBefore is the time without progress before StageSince, as recorded by another leader.
	WaitedBefore time.Duration
}

// Verb is the kind of an Action.
type Verb string

// The verbs of Next.
const (
	Wait  Verb = "wait"  // wait until something changes, or until a given time
	Start Verb = "start" // write a new request
	// Open opens the gate of a step. It is conditional only on Current, since a server that has reached a
	// step does not go back.
	Open   Verb = "open"
	Stop   Verb = "stop"   // stop the request, and report the stop
	Warn   Verb = "warn"   // report servers that are missing or back, or new findings
	Slow   Verb = "slow"   // report that there was no progress for a while
	Note   Verb = "note"   // record the time without progress for the next leader
	Finish Verb = "finish" // report that the update has succeeded
)

// Action is the leader's next action.
type Action struct {
	Verb    Verb
	Until   time.Time // the end of a Wait; zero if only a change ends it
	Why     string    // for operators
	Changes []updater.Change
}

// newWait returns a Wait that lasts until the given time or the next change. A zero time never comes.
func newWait(until time.Time, why string) Action { return Action{Verb: Wait, Until: until, Why: why} }

// newWaitForChange returns a Wait that only a change ends.
func newWaitForChange(why string) Action { return newWait(time.Time{}, why) }

// Load reads the snapshot on which the leader and operators' commands decide. own is the version of this
// program. Load does not set Activities or the leader's observations, which callers can add. In an Update, the
// commit becomes conditional on everything that Load has read, except presences, inventories, twins and
// claims. With an error, the snapshot is incomplete.
func Load(v *keyspace.View, own string) (s Snapshot, err error) {
	s = Snapshot{OwnVersion: own}
	if s.Config, err = updater.LoadConfig(v); err != nil {
		return s, err
	}
	infos, err := v.List(keys.Infos)
	if err != nil {
		return s, err
	}
	statuses, err := v.List(keys.Statuses)
	if err != nil {
		return s, err
	}

	s.Servers = registeredServers(infos)
	if err := s.decodeInfos(infos); err != nil {
		return s, err
	}
	if err := s.decodeStatuses(statuses); err != nil {
		return s, err
	}
	if err := s.peekLiveness(v); err != nil {
		return s, err
	}
	if s.Contents, err = readContents(v); err != nil {
		return s, err
	}

	// decodeStatuses has set Current.
	if s.Current == nil {
		err = s.readLastEntry(v)
	} else {
		err = s.readCurrentEntry(v)
	}

	return s, err
}

// decodeInfos decodes the documents in infos into their fields. The field of an absent document stays
// unchanged. infos are the keys below keys.Infos.
func (s *Snapshot) decodeInfos(infos []keyspace.KeyValue) (err error) {
	documents := []struct {
		key  string
		into any
	}{
		{keys.Release, &s.Release},
		{keys.Published, &s.Published},
		{keys.Refused, &s.Refused},
		{keys.Withdrawn, &s.Withdrawn},
		{keys.CheckFailure, &s.CheckFailure},
		{keys.Needs, &s.Needs},
		{keys.NoRoom, &s.ToldNoRoom},
		{keys.Target, &s.Target},
		{keys.Repair, &s.Repair},
		{keys.Degraded, &s.Degraded},
		{keys.Pause, &s.Pause},
		{keys.Recovery, &s.Recovery},
		{keys.HandedOver, &s.HandedOver},
	}
	for _, d := range documents {
		if _, err := decodeKey(infos, d.key, d.into); err != nil {
			return err
		}
	}

	// Only the presence of this key matters. Its value names an operator.
	s.Hurry, err = decodeKey(infos, keys.Hurry, new(string))
	return err
}

// decodeStatuses decodes the keys below keys.Statuses.
func (s *Snapshot) decodeStatuses(statuses []keyspace.KeyValue) (err error) {
	if _, err := decodeKey(statuses, keys.Current, &s.Current); err != nil {
		return err
	}
	if _, err := decodeKey(statuses, keys.Gate, &s.Gate); err != nil {
		return err
	}

	s.Workers, err = updater.DecodeByLRN[record.Status](statuses, keys.Workers)
	return err
}

// peekLiveness reads the workers' records about themselves, and finds the servers whose workers were never
// seen. It does not make the commit conditional on anything that it reads.
func (s *Snapshot) peekLiveness(v *keyspace.View) (err error) {
	s.Inventories, err = updater.PeekServers[record.Inventory](v, keys.Inventories)
	if err != nil {
		return err
	}
	s.Present, err = updater.PeekServers[record.Presence](v, keys.Presences)
	if err != nil {
		return err
	}
	s.Twins, err = updater.PeekServers[record.Twin](v, keys.Twins)
	if err != nil {
		return err
	}

	var absent []int
	for _, lrn := range s.Servers {
		if _, isAlive := s.Present[lrn]; !isAlive {
			absent = append(absent, lrn)
		}
	}
	if len(absent) == 0 {
		return nil
	}

	// A claim stays after its worker has ended, so an absent server without a claim was never seen. Claims are
	// long, so they are listed only if a server is absent.
	claims, err := v.ListUnguarded(keys.Claims)
	if err != nil {
		return err
	}
	s.Unseen = slices.DeleteFunc(absent, func(lrn int) bool {
		return slices.ContainsFunc(claims, func(kv keyspace.KeyValue) bool { return kv.Key == keys.Claim(lrn) })
	})

	return nil
}

// registeredServers returns the LRNs of the registered boot servers, which are among the keys below keys.Infos.
func registeredServers(infos []keyspace.KeyValue) (lrns []int) {
	for _, kv := range infos {
		if lrn, ok := record.ParseServerKey(keys.BootServers, kv.Key); ok {
			lrns = append(lrns, lrn)
		}
	}
	return record.SortServers(lrns)
}

// readContents reads the records of contents, by name.
func readContents(v *keyspace.View) (map[string]record.Contents, error) {
	kvs, err := v.List(keys.AllContents)
	if err != nil {
		return nil, err
	}

	found := map[string]record.Contents{}
	for _, kv := range kvs {
		c, err := keyspace.Decode[record.Contents](kv)
		if err != nil {
			return nil, err
		}
		found[strings.TrimPrefix(kv.Key, keys.AllContents)] = c
	}

	return found, nil
}

// readCurrentEntry sets Entry and LastID. The current request has the newest ID, so the history need not be
// listed.
func (s *Snapshot) readCurrentEntry(v *keyspace.View) (err error) {
	s.LastID = s.Current.ID
	s.Entry, _, err = keyspace.Load[record.History](v, keys.History(s.Current.ID))
	return err
}

// readLastEntry sets LastID and LastTo from the history's last entry, if there is one. It is for a snapshot
// without a current request.
func (s *Snapshot) readLastEntry(v *keyspace.View) error {
	kvs, err := v.List(keys.AllHistory)
	if err != nil {
		return err
	}
	if len(kvs) == 0 {
		return nil
	}

	// The keys are sorted, so the newest entry comes last.
	last, err := keyspace.Decode[record.History](kvs[len(kvs)-1])
	if err != nil {
		return err
	}
	s.LastID = last.ID
	s.LastTo = last.To
	return nil
}

// decodeKey decodes one of the listed keys into doc. If the key is absent, it leaves doc unchanged and returns
// false.
func decodeKey(kvs []keyspace.KeyValue, key string, doc any) (found bool, err error) {
	i := slices.IndexFunc(kvs, func(kv keyspace.KeyValue) bool { return kv.Key == key })
	if i < 0 {
		return false, nil
	}
	return true, keyspace.DecodeInto(kvs[i], doc)
}
