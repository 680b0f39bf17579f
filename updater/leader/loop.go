// Package leader is the side of an update that one neco-updater has, the one that leads: it
// looks for releases, makes requests, opens gates, watches over the workers, and reports how
// requests end. Package updater/decide says what it does next; Run campaigns, reads, commits
// that and sends alerts.
//
// It knows nothing of services and packages. Only multicall/necodaemon imports it.
package leader

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/clock"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// leader is the parts of an updater that leads.
type leader struct {
	Options
	leadership  *keyspace.Leadership
	afterOutage bool // the store was away before: servers may still be coming back, too
}

// maxBatchDelay bounds how long the leader waits for more changes before it decides
// again. Many workers come to a step at about the same time, and one decision does for
// all: the wait is five times as long as a decision takes, at most this.
const maxBatchDelay = 100 * time.Millisecond

// runDecisions reads the records, decides and acts, again and again, until the leadership or ctx ends.
// Between actions it waits for changes, or for the time when the decision could change.
func (l leader) runDecisions(ctx context.Context) error {
	feed := updater.NewChangeFeed(l.Store, keys.AllConfig, keys.Infos, keys.Statuses, keys.AllContents,
		keys.Presences, keys.Inventories)
	cache := &snapshotCache{store: l.Store, feed: feed, ownVersion: l.Version, stale: true}

	return withFeed(ctx, feed, func() error {
		observations := decide.NewObservations(l.afterOutage)
		told := "" // the last reason that was logged

		for ctx.Err() == nil {
			began := time.Now()
			a, err := l.actOnCache(ctx, cache, observations)
			took := time.Since(began)

			switch {
			case endsLeadership(err) || ctx.Err() != nil:
				return err
			case err != nil:
				observations.NoteOutage()
				slog.Warn("cannot decide what is next; trying again", "error", err)
				_ = backoff.Sleep(ctx, updater.RetryInterval)
				continue
			}

			if a.Why != told {
				told = a.Why
				slog.Info(string(a.Verb), "why", a.Why)
			}

			if a.Verb == decide.Wait {
				clock.WaitUntil(ctx, feed.Ready(), observations.WallTime(a.Until))
				_ = backoff.Sleep(ctx, min(5*took, maxBatchDelay))
			}
		}

		return nil
	})
}

func withFeed(ctx context.Context, feed *updater.ChangeFeed, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { _ = feed.Run(ctx) }) // f notices itself if the store is gone
	defer following.Wait()
	defer cancel()
	return f()
}

// followKeys calls act again whenever one of the keys, or a key below one of the prefixes, has changed, and at the time
// that it returns, until it returns an error that ends the leadership.
func (l leader) followKeys(ctx context.Context, names []string, act func() (until time.Time, err error)) error {
	feed := updater.NewChangeFeed(l.Store, names...)
	return withFeed(ctx, feed, func() error {
		for ctx.Err() == nil {
			until, err := act()
			if endsLeadership(err) {
				return err
			}
			clock.WaitUntil(ctx, feed.Ready(), until)
			feed.Take() // whatever it is, all is read again
		}

		return nil
	})
}

// actOnCache decides on the cached snapshot. That is enough to wait, and to open a gate;
// anything else is decided again in a transaction that reads everything.
func (l leader) actOnCache(ctx context.Context, f *snapshotCache, m *decide.Observations) (decide.Action, error) {
	if err := f.catchUp(ctx); err != nil {
		return decide.Action{}, err
	}

	a := l.nextAction(f.snapshot, m)
	if a.Verb == decide.Wait {
		return a, nil
	}
	if opened, err := l.tryOpenGate(ctx, f, a); opened || err != nil {
		return a, err
	}

	f.stale = true
	return l.actInTransaction(ctx, m)
}

// tryOpenGate opens the gate of the decision, if the decision's request is still the present one, and this
// updater still leads. It needs no more conditions: servers that have come to a step do not go back.
func (l leader) tryOpenGate(ctx context.Context, f *snapshotCache, a decide.Action) (opened bool, err error) {
	if a.Verb != decide.Open {
		return false, nil
	}

	gate := a.Changes[0]
	at, err := l.leadership.PutIf(ctx, keys.Current, f.requestRevision, gate.Key, gate.Value)
	if at == 0 || err != nil {
		return false, err
	}

	f.snapshot.Gate, _ = gate.Value.(record.Gate)
	return true, nil
}

func (l leader) nextAction(s decide.Snapshot, m *decide.Observations) decide.Action {
	now := m.Now(s.Current)
	m.Update(&s, s.Present, now)
	measureFleet(l.Metrics, s)
	return decide.Next(s, now)
}

// actInTransaction writes the decision only if nothing that it depends on has changed,
// and this updater still leads.
func (l leader) actInTransaction(ctx context.Context, m *decide.Observations) (a decide.Action, err error) {
	err = l.leadership.Update(ctx, func(tx *keyspace.Tx) error {
		s, err := decide.Load(tx.View, l.Version)
		if err != nil {
			return err
		}

		s.Activities, err = updater.PeekServers[record.Activity](tx.View, keys.Activities)
		if err != nil {
			return err
		}

		a = l.nextAction(s, m)
		return updater.Apply(tx, a.Changes)
	})

	return a, err
}

// heartbeatInterval is how often the leader says that it lives.
const heartbeatInterval = time.Minute

type heartbeat struct {
	State   string    `json:"state"` // as neco status has it
	Version string    `json:"version,omitempty"`
	At      time.Time `json:"at"`
}

func newHeartbeat(s decide.Snapshot, now time.Time) heartbeat {
	return heartbeat{State: s.Condition(now, true).State, Version: s.LastVersion(), At: now}
}

// sendHeartbeats sends a heartbeat at each interval. It does not send a failed one again.
func (l leader) sendHeartbeats(ctx context.Context) error {
	return l.followKeys(ctx, []string{keys.Config("notify.heartbeat")}, func() (time.Time, error) {
		var s decide.Snapshot
		err := l.Store.View(ctx, func(view *keyspace.View) (err error) {
			s.Config, err = updater.LoadConfig(view)
			if err == nil && s.Config.Heartbeat != "" {
				s, err = decide.Load(view, l.Version)
			}
			return err
		})
		if err == nil && s.Config.Heartbeat != "" {
			beat := receiver{
				name:    "notify.heartbeat",
				address: s.Config.Heartbeat,
				body: func(record.Alert) any {
					return newHeartbeat(s, time.Now().UTC())
				},
			}
			err = beat.send(ctx, s.Config, record.Alert{})
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("no heartbeat was sent", "error", err)
		}

		return time.Now().Add(heartbeatInterval), nil
	})
}

// sweepInterval is how often the leader has the store remove what it does not need any more.
const sweepInterval = 10 * time.Minute

// sweepStore sweeps the store at intervals.
func (l leader) sweepStore(ctx context.Context) error {
	for {
		if err := l.Store.SweepStore(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot sweep the store", "error", err)
		}
		if err := backoff.Sleep(ctx, sweepInterval); err != nil {
			return err
		}
	}
}

// snapshotCache is the leader's snapshot. It is read once, and then kept current by the changes of workers, gates,
// presences and inventories, which are frequent. Any other change, and a change without its value, makes the cache
// stale. The cache may lag behind the store. So each write that follows from it has a condition.
type snapshotCache struct {
	store           *keyspace.Space
	feed            *updater.ChangeFeed
	ownVersion      string
	stale           bool // everything has to be read again
	revision        int64
	requestRevision int64 // at which the request was written
	snapshot        decide.Snapshot
}

// catchUp applies the changes since the last call. If one of them cannot be applied, it reads the snapshot again.
func (f *snapshotCache) catchUp(ctx context.Context) error {
	n := f.feed.Take()
	f.stale = f.stale || n.All
	for _, c := range n.Changes {
		if f.stale {
			break
		}
		f.stale = !f.applyChange(c)
	}
	if !f.stale {
		return nil
	}

	err := f.store.View(ctx, f.reload)
	f.stale = err != nil
	return err
}

// reload reads the snapshot, and the revisions that belong to it, in one view.
func (f *snapshotCache) reload(v *keyspace.View) (err error) {
	f.snapshot, err = decide.Load(v, f.ownVersion)
	if err != nil {
		return err
	}

	var r record.Request
	f.requestRevision, err = v.GetAt(keys.Current, &r)
	if err != nil {
		return err
	}
	f.revision, err = v.Revision()
	return err
}

// applyChange applies a change to the cached snapshot. It returns false if it cannot; then the snapshot
// must be read again.
func (f *snapshotCache) applyChange(c keyspace.Change) bool {
	switch {
	case c.Revision <= f.revision:
		return true // the snapshot has been read since
	case !c.IsComplete():
		return false
	case c.Key == keys.Gate:
		f.snapshot.Gate = record.Gate{}
		return c.Deleted || keyspace.DecodeInto(c.KeyValue, &f.snapshot.Gate) == nil
	case strings.HasPrefix(c.Key, keys.Workers):
		return applyServerChange(f.snapshot.Workers, keys.Workers, c)
	case strings.HasPrefix(c.Key, keys.Presences):
		lrn, _ := record.ParseServerKey(keys.Presences, c.Key)
		return !slices.Contains(f.snapshot.Unseen, lrn) &&
			applyServerChange(f.snapshot.Present, keys.Presences, c)
	case strings.HasPrefix(c.Key, keys.Inventories):
		return applyServerChange(f.snapshot.Inventories, keys.Inventories, c)
	}

	return false
}

// applyServerChange applies the change of a key PREFIX/LRN to records, which has the servers' records by LRN. It
// ignores other keys. It returns false if it cannot decode the record.
func applyServerChange[T any](records map[int]T, prefix string, c keyspace.Change) bool {
	lrn, ok := record.ParseServerKey(prefix, c.Key)
	if !ok {
		return true
	}
	if c.Deleted {
		delete(records, lrn)
		return true
	}

	var r T
	if keyspace.DecodeInto(c.KeyValue, &r) != nil {
		return false // decide.Load reads it again, and returns the error
	}
	records[lrn] = r
	return true
}
