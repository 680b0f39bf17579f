package dashboard

import (
	"context"
	"time"

	"bijou/state/backoff"
)

const (
	pulseInterval = 5 * time.Second // how often the store is asked whether it answers
	pulseTimeout  = 5 * time.Second // after which it does not
)

// pulse says how a store has answered last.
type pulse struct {
	Now      int64  `json:"now"`           // this host's time, in milliseconds of Unix
	Answered bool   `json:"answered"`      // the store has, just now
	Why      string `json:"why,omitempty"` // it has not
}

// takePulses asks a store every pulseInterval whether it answers. It ends when ctx is done, and then closes
// the channel.
func takePulses(ctx context.Context, ask func(ctx context.Context) error) <-chan pulse {
	pulses := make(chan pulse)

	go func() {
		defer close(pulses)

		for backoff.Sleep(ctx, pulseInterval) == nil {
			select {
			case pulses <- takePulse(ctx, ask):
			case <-ctx.Done():
			}
		}
	}()

	return pulses
}

func takePulse(ctx context.Context, ask func(ctx context.Context) error) pulse {
	asking, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()

	err := ask(asking)
	p := pulse{Now: time.Now().UnixMilli(), Answered: err == nil}
	switch {
	case err == nil:
		// It has answered: there is nothing to explain.
	case asking.Err() != nil:
		p.Why = "it has not answered for " + pulseTimeout.String()
	default:
		p.Why = err.Error()
	}

	return p
}
