// Package leader implements the neco-updater that leads an update. It checks for releases, writes requests,
// opens gates, watches the workers, and reports how requests end. Package updater/decide makes the decisions.
// Run campaigns, reads snapshots, commits the decisions, and sends alerts.
//
// It does not handle services or packages on boot servers. Package worker does.
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

// leader is an updater that has been elected.
type leader struct {
	Options
	leadership  *keyspace.Leadership
	afterOutage bool // the store was unreachable just before, so servers may need time to come back
}

// maxBatchDelay limits how long the leader waits for more changes before it decides again. Many workers
// reach a step at about the same time, and one decision serves them all. So the leader waits five times as
// long as a decision takes, but not longer than this.
const maxBatchDelay = 100 * time.Millisecond

// runDecisions reads the records, decides and acts in a loop, until the leadership or ctx ends. Between
// actions it waits for changes, or for the time when the decision can change. It returns an error that ends the
// leadership, and any error once ctx is done. It logs and retries all other errors.
func (l leader) runDecisions(ctx context.Context) error {
	feed := updater.NewChangeFeed(l.Store, keys.AllConfig, keys.Infos, keys.Statuses, keys.AllContents,
		keys.Presences, keys.Inventories)
	cache := &snapshotCache{store: l.Store, feed: feed, ownVersion: l.Version, stale: true}

	return withFeed(ctx, feed, func() error {
		observations := decide.NewObservations(l.afterOutage)
		loggedWhy := "" // the last reason that was logged

		for ctx.Err() == nil {
			began := time.Now()
			a, err := l.actOnCache(ctx, cache, observations)
			took := time.Since(began)

			switch {
			case endsLeadership(err) || ctx.Err() != nil:
				return err
			case err != nil:
				// The store may have been unreachable, so servers may need time to come back.
				observations.NoteOutage()
				slog.Warn("cannot decide the next action; trying again", "error", err)
				_ = backoff.Sleep(ctx, updater.RetryInterval)
				continue
			}

			if a.Why != loggedWhy {
				loggedWhy = a.Why
				slog.Info(string(a.Verb), "why", a.Why)
			}

			if a.Verb == decide.Wait {
				clock.WaitUntil(ctx, feed.Ready(), observations.WallTime(a.Until))
				// Let more changes arrive, so that one decision serves them all. A slow decision is worth a longer
				// wait.
				_ = backoff.Sleep(ctx, min(5*took, maxBatchDelay))
			}
		}

		return nil
	})
}

// withFeed calls f while the feed follows the store, and returns the error of f.
func withFeed(ctx context.Context, feed *updater.ChangeFeed, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	// The error is ignored, since f also fails if the store is gone.
	following.Go(func() { _ = feed.Run(ctx) })

	// Run returns only after cancel. Deferred calls run in reverse order, so cancel runs before Wait.
	defer following.Wait()
	defer cancel()
	return f()
}

// followKeys calls act at once. It calls act again whenever one of the keys may have changed, or at the time that
// the last call of act returned. A zero time never comes. A name that ends with a slash stands for all keys below
// it. followKeys returns an error of act only if the error ends the leadership, and ignores all others. It returns
// nil when ctx is done.
func (l leader) followKeys(ctx context.Context, names []string, act func() (until time.Time, err error)) error {
	feed := updater.NewChangeFeed(l.Store, names...)
	return withFeed(ctx, feed, func() error {
		for ctx.Err() == nil {
			until, err := act()
			if endsLeadership(err) {
				return err
			}
			clock.WaitUntil(ctx, feed.Ready(), until)
			// act reads everything again, so the changes themselves do not matter.
			feed.Take()
		}

		return nil
	})
}

// actOnCache decides on the next action, carries it out, and returns it. A decision that is based on the cached
// snapshot is enough to wait or to open a gate. For any other action, or if the gate cannot be opened on this basis,
// actOnCache decides again in a transaction that reads everything.
func (l leader) actOnCache(
	ctx context.Context,
	cache *snapshotCache,
	observations *decide.Observations,
) (decide.Action, error) {
	if err := cache.catchUp(ctx); err != nil {
		return decide.Action{}, err
	}

	a := l.nextAction(cache.snapshot, observations)
	if a.Verb == decide.Wait {
		return a, nil
	}
	opened, err := l.tryOpenGate(ctx, cache, a)
	if err != nil {
		return a, err
	}
	if opened {
		return a, nil
	}

	// The transaction may change records that are in the cache.
	cache.stale = true
	return l.actInTransaction(ctx, observations)
}

// tryOpenGate opens a gate if action a does so, the action's request is still current, and this updater still
// leads. Otherwise it returns false. It needs no other conditions, since servers that have reached a step do
// not go back.
func (l leader) tryOpenGate(ctx context.Context, cache *snapshotCache, a decide.Action) (opened bool, err error) {
	if a.Verb != decide.Open {
		return false, nil
	}

	// An Open writes only the gate.
	gate := a.Changes[0]
	// keys.Current holds the request. If it has changed, or this updater no longer leads, PutIf
	// writes nothing and returns 0.
	revision, err := l.leadership.PutIf(ctx, keys.Current, cache.requestRevision, gate.Key, gate.Value)
	if err != nil {
		return false, err
	}
	isWritten := revision != 0
	if !isWritten {
		return false, nil
	}

	cache.snapshot.Gate, _ = gate.Value.(record.Gate)
	return true, nil
}

// nextAction adds the observations to the snapshot, and decides on the next action. It also updates the
// metrics.
func (l leader) nextAction(s decide.Snapshot, observations *decide.Observations) decide.Action {
	now := observations.Now(s.Current)
	observations.Update(&s, s.Present, now)
	measureFleet(l.Metrics, s)
	return decide.Next(s, now)
}

// actInTransaction decides in a transaction that reads everything, writes the changes, and returns the action. If a
// record has changed before the commit, it decides again. Changes of the activities, and of the records that
// [decide.Load] excepts, do not count. The error wraps [keyspace.ErrSessionLost] if this updater no longer leads.
func (l leader) actInTransaction(ctx context.Context, observations *decide.Observations) (a decide.Action, err error) {
	err = l.leadership.Update(ctx, func(tx *keyspace.Tx) error {
		s, err := decide.Load(tx.View, l.Version)
		if err != nil {
			return err
		}

		// The cached snapshot lacks the activities, which change often. They only show who is at fault, and why.
		s.Activities, err = updater.PeekServers[record.Activity](tx.View, keys.Activities)
		if err != nil {
			return err
		}

		a = l.nextAction(s, observations)
		return updater.Apply(tx, a.Changes)
	})

	return a, err
}

// heartbeatInterval is how often the leader sends a heartbeat.
const heartbeatInterval = time.Minute

// heartbeat is the message that the leader sends while it leads.
type heartbeat struct {
	State   string    `json:"state"` // as in neco status
	Version string    `json:"version,omitempty"`
	At      time.Time `json:"at"`
}

// newHeartbeat returns the heartbeat for the snapshot at the given time.
func newHeartbeat(s decide.Snapshot, now time.Time) heartbeat {
	const leads = true // only a leader sends heartbeats
	return heartbeat{State: s.Condition(now, leads).State, Version: s.LastVersion(), At: now}
}

// sendHeartbeats sends a heartbeat at once, at each interval, and when notify.heartbeat may have changed. It does
// not retry a failed heartbeat.
func (l leader) sendHeartbeats(ctx context.Context) error {
	return l.followKeys(ctx, []string{keys.Config("notify.heartbeat")}, func() (time.Time, error) {
		if err := l.sendHeartbeat(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("no heartbeat was sent", "error", err)
		}
		return time.Now().Add(heartbeatInterval), nil
	})
}

// sendHeartbeat sends one heartbeat, if a URL for heartbeats is configured.
func (l leader) sendHeartbeat(ctx context.Context) error {
	var s decide.Snapshot
	err := l.Store.View(ctx, func(view *keyspace.View) (err error) {
		s.Config, err = updater.LoadConfig(view)
		if err != nil {
			return err
		}
		if s.Config.Heartbeat == "" {
			return nil
		}
		s, err = decide.Load(view, l.Version)
		return err
	})
	if err != nil {
		return err
	}
	if s.Config.Heartbeat == "" {
		return nil
	}

	to := receiver{
		name:    "notify.heartbeat",
		address: s.Config.Heartbeat,
		body:    func(record.Alert) any { return newHeartbeat(s, time.Now().UTC()) },
	}
	// The body does not depend on the alert, so the alert is empty.
	return to.send(ctx, s.Config, record.Alert{})
}

// sweepInterval is how often the leader removes data from the store that is no longer needed.
const sweepInterval = 10 * time.Minute

// sweepStore makes the store remove data that it no longer needs, at intervals. It returns only when ctx is done.
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

// snapshotCache is the leader's snapshot. After the first read, it is updated with the changes of workers,
// gates, presences and inventories, which are frequent. Any other change makes the cache stale, as does a
// change that comes without the new value. The cache can lag behind the store, so each write that is based on
// the cache has a condition.
type snapshotCache struct {
	store           *keyspace.Space
	feed            *updater.ChangeFeed
	ownVersion      string
	stale           bool  // everything must be read again
	revision        int64 // the revision of the snapshot
	requestRevision int64 // the revision at which the request was written
	snapshot        decide.Snapshot
}

// catchUp applies the changes since the last call to the snapshot. It reads the whole snapshot again instead if the
// cache is stale, if any key may have changed, or if one of the changes cannot be applied.
func (f *snapshotCache) catchUp(ctx context.Context) error {
	news := f.feed.Take()
	f.stale = f.stale || news.All
	for _, c := range news.Changes {
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

// reload reads the snapshot, its revision and the request's revision in one view.
func (f *snapshotCache) reload(v *keyspace.View) (err error) {
	f.snapshot, err = decide.Load(v, f.ownVersion)
	if err != nil {
		return err
	}

	// The snapshot already has the request, so only its revision is kept.
	var request record.Request
	f.requestRevision, err = v.GetAt(keys.Current, &request)
	if err != nil {
		return err
	}
	f.revision, err = v.Revision()
	return err
}

// applyChange applies a change to the cached snapshot. It returns false if the snapshot must be read again
// instead.
func (f *snapshotCache) applyChange(c keyspace.Change) bool {
	switch {
	case c.Revision <= f.revision:
		// The snapshot was read after this change.
		return true
	case !c.IsComplete():
		// The change does not contain the new value.
		return false
	case c.Key == keys.Gate:
		// A deleted gate is zero. A new gate keeps no field of the previous one.
		f.snapshot.Gate = record.Gate{}
		return c.Deleted || keyspace.DecodeInto(c.KeyValue, &f.snapshot.Gate) == nil
	case strings.HasPrefix(c.Key, keys.Workers):
		return applyServerChange(f.snapshot.Workers, keys.Workers, c)
	case strings.HasPrefix(c.Key, keys.Presences):
		// The first presence of a server also changes Unseen, which only reload can update.
		lrn, _ := record.ParseServerKey(keys.Presences, c.Key)
		return !slices.Contains(f.snapshot.Unseen, lrn) &&
			applyServerChange(f.snapshot.Present, keys.Presences, c)
	case strings.HasPrefix(c.Key, keys.Inventories):
		return applyServerChange(f.snapshot.Inventories, keys.Inventories, c)
	}

	return false
}

// applyServerChange applies the change of a key PREFIX/LRN to records, which holds records by LRN. It
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
		// decide.Load reads the record again, and returns the error.
		return false
	}
	records[lrn] = r
	return true
}
