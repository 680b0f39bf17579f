package dashboard

import (
	"context"
	"time"

	"bijou/state/backoff"
)

const (
	pulseInterval = 5 * time.Second // the pause between two requests to the store
	pulseTimeout  = 5 * time.Second // how long the store may take to answer
)

// pulse is the result of the last request to a store.
type pulse struct {
	Now      int64  `json:"now"`           // this host's Unix time in milliseconds
	Answered bool   `json:"answered"`      // whether the store has answered
	Why      string `json:"why,omitempty"` // the reason if the store has not answered
}

// takePulses returns a channel of pulses. After each pause of pulseInterval, a goroutine sends a request to the
// store, and the result to the channel. It closes the channel when ctx is done.
func takePulses(ctx context.Context, ask func(ctx context.Context) error) <-chan pulse {
	pulses := make(chan pulse)

	go func() {
		defer close(pulses)

		for backoff.Sleep(ctx, pulseInterval) == nil {
			// takePulse runs before the select, which then waits for the receiver.
			select {
			case pulses <- takePulse(ctx, ask):
			case <-ctx.Done():
			}
		}
	}()

	return pulses
}

// takePulse sends a request to the store, and returns whether the store has answered within pulseTimeout. If it has not,
// the result says why.
func takePulse(ctx context.Context, ask func(ctx context.Context) error) pulse {
	askCtx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()

	err := ask(askCtx)
	p := pulse{Now: time.Now().UnixMilli(), Answered: err == nil}
	switch {
	case err == nil:
		// The store has answered, so there is nothing to explain.
	case askCtx.Err() != nil:
		p.Why = "no answer for " + pulseTimeout.String()
	default:
		p.Why = err.Error()
	}

	return p
}
