package leader

import (
	"context"
	"log/slog"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/clock"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// heartbeatInterval is how often the leader says that it lives.
const heartbeatInterval = time.Minute

type heartbeat struct {
	State   string    `json:"state"` // as neco status has it
	Version string    `json:"version,omitempty"`
	At      time.Time `json:"at"`
}

func newHeartbeat(s decide.Snapshot, now time.Time) heartbeat {
	p := heartbeat{State: "up to date", Version: s.LastVersion(), At: now}
	switch r := s.Current; {
	case r != nil && r.Stop:
		p.State = "stopped"
	case r != nil && !r.Ended():
		p.State = "updating"
	case len(s.Degraded.Findings) > 0:
		p.State = "degraded"
	}
	return p
}

// sendHeartbeats does not make up for a heartbeat that could not be sent.
func (l leader) sendHeartbeats(ctx context.Context) error {
	feed := updater.NewChangeFeed(l.Store, keys.Config("notify.heartbeat"))
	return withFeed(ctx, feed, func() error {
		for ; ctx.Err() == nil; clock.WaitUntil(ctx, feed.Ready(), time.Now().Add(heartbeatInterval)) {
			var s decide.Snapshot
			err := l.Store.View(ctx, func(view *keyspace.View) (err error) {
				if s.Config, err = updater.LoadConfig(view); err == nil && s.Config.Heartbeat != "" {
					s, err = decide.Load(view, l.Version)
				}
				return err
			})
			if err == nil && s.Config.Heartbeat != "" {
				beat := receiver{"notify.heartbeat", s.Config.Heartbeat, func(record.Alert) any { return newHeartbeat(s, time.Now().UTC()) }}
				err = beat.send(ctx, s.Config, record.Alert{})
			}
			if err != nil && ctx.Err() == nil {
				slog.Warn("no heartbeat was sent", "error", err)
			}
		}
		return nil
	})
}
