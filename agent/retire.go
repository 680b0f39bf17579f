package agent

import "context"

// retire waits until the agent is asked to retire, and then for the hooks in
// flight, and stops it.
func (h *host) retire(ctx context.Context, asked <-chan struct{}, stop func()) {
	select {
	case <-asked:
	case <-ctx.Done():
		return
	}
	h.log.Info("no hook begins any more; the agent ends with those in flight")
	select {
	case <-h.slots.Drain():
		stop()
	case <-ctx.Done():
	}
}
