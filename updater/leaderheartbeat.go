package updater

import (
	"context"
	"log/slog"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// heartbeatInterval is how often the leader says that it lives, to whoever raises an alarm
// when it does not.
const heartbeatInterval = time.Minute

// heartbeat is what it says.
type heartbeat struct {
	State   string    `json:"state"` // as neco status has it
	Version string    `json:"version,omitempty"`
	At      time.Time `json:"at"`
}

// newHeartbeat is what a heartbeat says of the fleet.
func (s Snapshot) newHeartbeat(now time.Time) heartbeat {
	p := heartbeat{State: "up to date", Version: s.Last(), At: now}
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

// sendHeartbeats sends heartbeats where they are wanted. One that fails is not made up for.
func (l leader) sendHeartbeats(ctx context.Context) error {
	v := newChangeFeed(l.Store, Keys().Config("notify.heartbeat"))
	return withFeed(ctx, v, func() error {
		for ; ctx.Err() == nil; waitUntil(ctx, v.ready, time.Now().Add(heartbeatInterval)) {
			var s Snapshot
			err := l.Store.View(ctx, func(view *state.KeyView) (err error) {
				if s.Config, err = LoadConfig(view); err == nil && s.Config.Heartbeat != "" {
					s, err = Load(view, l.Version)
				}
				return err
			})
			if err == nil && s.Config.Heartbeat != "" {
				beat := receiver{"notify.heartbeat", s.Config.Heartbeat, func(record.Alert) any { return s.newHeartbeat(time.Now().UTC()) }}
				err = beat.send(ctx, s.Config, record.Alert{})
			}
			if err != nil && ctx.Err() == nil {
				slog.Warn("no heartbeat was sent", "error", err)
			}
		}
		return nil
	})
}
