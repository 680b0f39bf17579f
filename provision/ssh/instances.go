package ssh

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"bijou/provision/provider"
)

// asked is a host to be asked whose machine it is.
type asked struct {
	target target
	record record // its machine, as far as is known; empty: none
}

// atOnce is how many hosts are asked at the same time.
const atOnce = 32

// Instances asks all hosts of the pool, and all that are machines, at the same time
// and in bounded time. One that does not answer, or refuses us, is listed as
// running if it is known to be a machine: it may well run, on the other side of a
// partition, and must not be started elsewhere. It is then left alone for a while,
// so that hosts whose turn did not come, which count as silent, get theirs next time.
func (p *Provider) Instances(ctx context.Context) ([]provider.Instance, error) {
	hosts, err := p.hosts()
	if err != nil {
		return nil, err
	}
	round, cancel := context.WithTimeout(ctx, p.round)
	defer cancel()
	answers := make([]*provider.Instance, len(hosts))
	seats := make(chan struct{}, atOnce) // one slot a host that is asked
	var asking sync.WaitGroup
	for i, h := range hosts {
		asking.Go(func() {
			select {
			case seats <- struct{}{}:
				defer func() { <-seats }()
				answers[i] = p.ask(round, h)
			case <-round.Done():
				answers[i] = p.presumed(h)
			}
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var found []provider.Instance
	for _, a := range answers {
		if a != nil {
			found = append(found, *a)
		}
	}
	slices.SortFunc(found, func(a, b provider.Instance) int {
		n, _ := strconv.Atoi(a.Machine)
		m, _ := strconv.Atoi(b.Machine)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// hosts lists whom to ask: those that are machines, and the rest of the pool.
func (p *Provider) hosts() (hosts []asked, err error) {
	pool, err := p.pool()
	if err != nil {
		return nil, err
	}
	records, err := p.records()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.unreadable != nil {
			continue // its host, if it is of the pool, is asked, and writes it anew
		}
		t, err := r.target()
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, asked{known(pool, t).target, r})
	}
	for _, m := range pool {
		if !slices.ContainsFunc(hosts, func(h asked) bool { return h.target.String() == m.target.String() }) {
			hosts = append(hosts, asked{target: m.target})
		}
	}
	return hosts, nil
}

// ask finds out what a host is; nil is no machine of this environment. One that was
// not waited for as long as it may take is not noted as silent.
func (p *Provider) ask(ctx context.Context, a asked) *provider.Instance {
	if !p.quiet(a.target) {
		h, err := p.visit(ctx, a.target)
		if err == nil {
			p.heard(a.target)
			return p.answer(a, h)
		}
		if ctx.Err() == nil {
			p.unheard(a, err)
		}
	}
	return p.presumed(a)
}

// presumed is what a host that does not answer is taken to be.
func (p *Provider) presumed(a asked) *provider.Instance {
	if a.record.Machine == "" {
		return nil
	}
	i := p.instance(a.target, a.record.Machine, true)
	return &i
}

// visit looks at a host in bounded time.
func (p *Provider) visit(ctx context.Context, t target) (host, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	c, err := p.dial(ctx, t)
	if err != nil {
		return host{}, err
	}
	defer c.close()
	return p.look(ctx, c)
}

// answer is what a host that answered is.
func (p *Provider) answer(a asked, h host) *provider.Instance {
	if !h.marked || h.mark.Environment != p.env.UUID {
		p.unborne(a)
		return nil
	}
	if a.record.Machine != h.mark.Machine {
		if err := p.remember(a.target, h.mark.Machine, h.mark.Token); err != nil {
			p.log.Warn("cannot write down which host is the machine", "machine", h.mark.Machine, "error", err)
		}
	}
	i := p.instance(a.target, h.mark.Machine, h.running)
	return &i
}

// unborne forgets that a host was to be a machine which it is not, unless it is
// becoming one just now.
func (p *Provider) unborne(a asked) {
	if a.record.Machine == "" || !p.lock(a.record.Machine).TryLock() {
		return
	}
	defer p.lock(a.record.Machine).Unlock()
	if err := p.forget(a.target, a.record.Machine); err != nil {
		p.log.Warn("a record of a host stays", "machine", a.record.Machine, "error", err)
	}
}

// quiet says if the host has not answered a short while ago.
func (p *Provider) quiet(t target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.silent[t.String()]
	return ok && time.Since(since) < p.recall
}

// heard notes that a host answers.
func (p *Provider) heard(t target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, was := p.silent[t.String()]; was {
		p.log.Info("a host answers again", "host", t.String())
	}
	delete(p.silent, t.String())
}

// unheard notes that a host does not, and says so once.
func (p *Provider) unheard(a asked, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, was := p.silent[a.target.String()]; !was {
		p.log.Warn("a host does not answer: its machine, if it is one, counts as running and is not started elsewhere",
			"host", a.target.String(), "machine", a.record.Machine, "error", err)
	}
	p.silent[a.target.String()] = time.Now()
}
