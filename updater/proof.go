package updater

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// proof shows others that the worker lives, and which version it is: its key in
// presence/ stands under a session, which is begun anew when it is lost. Where a
// worker of another server stands there already, it waits for that to be gone.
type proof struct {
	o     WorkerOptions
	me    record.Presence
	heard func(back bool) // told when the store is back, or twin has changed
	ready sync.Once
	asked sync.Once
	known chan struct{} // closed once the first announcement was made, or refused

	mu      sync.Mutex
	session *state.KeySession
	begun   chan struct{} // closed when there is another session
	other   string        // whose presence stands where its own should
}

func newProof(o WorkerOptions, me string, heard func(back bool)) *proof {
	host, _ := os.Hostname() // else it has no name
	return &proof{
		o: o, me: record.Presence{Version: o.Version, Server: me, Host: host}, heard: heard,
		known: make(chan struct{}), begun: make(chan struct{}),
	}
}

// run keeps a session until ctx is done.
func (p *proof) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := p.stand(ctx)
		if ctx.Err() == nil && err != nil && !errors.Is(err, state.ErrSessionLost) {
			if err := bear(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// goodbye is how long a store that does not answer is waited for at the end.
const goodbye = 5 * time.Second

// stand begins a session and returns when it has ended.
func (p *proof) stand(ctx context.Context) error {
	s, err := p.o.Store.NewSession(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		_ = s.Close(ctx) // else it expires
	}()
	if err := p.enter(ctx, s); err != nil {
		return err
	}
	p.set(s)
	return p.keep(ctx, s)
}

// announce writes the presence, unless another server's worker stands there.
func (p *proof) announce(ctx context.Context, s *state.KeySession) (other *record.Presence, err error) {
	key := Keys().Presence(p.o.LRN)
	err = p.o.Store.Update(ctx, func(tx *state.KeyTx) error {
		there, err := read[record.Presence](tx.KeyView, key)
		if err != nil {
			return err
		}
		if other = nil; there != nil && there.Server != "" && there.Server != p.me.Server {
			other = there
			return nil
		}
		return tx.PutLeased(key, p.me, s)
	})
	return other, err
}

// keep writes the presence again whenever it was removed (its server was
// unregistered, and registered again), until the session ends.
func (p *proof) keep(ctx context.Context, s *state.KeySession) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel()
	for {
		err := p.renew(ctx, s)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// renew waits for a change of the presence, or writes it if it is not its own.
func (p *proof) renew(ctx context.Context, s *state.KeySession) error {
	key := Keys().Presence(p.o.LRN)
	var seen *record.Presence
	var revision int64
	err := p.o.Store.View(ctx, func(v *state.KeyView) (err error) {
		if seen, err = read[record.Presence](v, key); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	switch {
	case err != nil:
		return err
	case seen == nil || *seen != p.me:
		return p.enter(ctx, s)
	}
	return p.o.Store.Await(ctx, revision, key)
}

// set makes the session known.
func (p *proof) set(s *state.KeySession) {
	p.mu.Lock()
	again := p.session != nil
	defer p.heard(again) // a session that was lost shows that the store was away
	defer p.mu.Unlock()
	p.session = s
	close(p.begun)
	p.begun = make(chan struct{})
}

// living returns a session that lives, as soon as there is one.
func (p *proof) living(ctx context.Context) (*state.KeySession, error) {
	for {
		p.mu.Lock()
		s, begun := p.session, p.begun
		p.mu.Unlock()
		if s != nil {
			select {
			case <-s.Done():
			default:
				return s, nil
			}
		}
		select {
		case <-begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
