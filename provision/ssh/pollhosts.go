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

// polledHost is a host to be asked whose machine it is.
type polledHost struct {
	target target
	record hostRecord // its machine, as far as is known; empty: none
}

// maxParallelPolls limits how many hosts are asked at the same time.
const maxParallelPolls = 32

// Instances queries all hosts of the pool, and all that are machines, at the same time and in bounded time.
// A host that does not answer, or refuses the login, counts as running if it is known to be a machine. It
// can run on the other side of a partition, and must not be started elsewhere. It is then left alone for a
// while, so that hosts that were not queried in time come first in the next round.
func (p *Provider) Instances(ctx context.Context) ([]provider.Instance, error) {
	hosts, err := p.listHosts()
	if err != nil {
		return nil, err
	}

	round, cancel := context.WithTimeout(ctx, p.pollTimeout)
	defer cancel()
	answers := make([]*provider.Instance, len(hosts))
	seats := make(chan struct{}, maxParallelPolls) // one slot a host that is asked
	var asking sync.WaitGroup

	for i, h := range hosts {
		asking.Go(func() {
			select {
			case seats <- struct{}{}:
				defer func() { <-seats }()
				answers[i] = p.pollHost(round, h)
			case <-round.Done():
				answers[i] = p.presumeRunning(h)
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

// listHosts lists the hosts to query: those in the ledger, and the others of the pool.
func (p *Provider) listHosts() (hosts []polledHost, err error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return nil, err
	}

	for _, r := range records {
		if r.unreadable != nil {
			continue // its host, if it is of the pool, is asked, and writes it anew
		}
		t, err := r.parseHost()
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, polledHost{poolMember(pool, t).target, r})
	}

	for _, m := range pool {
		if !slices.ContainsFunc(hosts, func(h polledHost) bool { return h.target.String() == m.target.String() }) {
			hosts = append(hosts, polledHost{target: m.target})
		}
	}

	return hosts, nil
}

// pollHost queries one host; nil if it is no machine of this environment. It notes a host as silent only if
// it has waited for the full time.
func (p *Provider) pollHost(ctx context.Context, a polledHost) *provider.Instance {
	if !p.isSilent(a.target) {
		h, err := p.dialAndInspect(ctx, a.target)
		if err == nil {
			p.noteAnswer(a.target)
			return p.readAnswer(a, h)
		}

		if ctx.Err() == nil {
			p.noteSilence(a, err)
		}
	}

	return p.presumeRunning(a)
}

func (p *Provider) presumeRunning(a polledHost) *provider.Instance {
	if a.record.Machine == "" {
		return nil
	}
	return new(p.newInstance(a.target, a.record.Machine, true))
}

// dialAndInspect connects to the host, and reads its mark and state.
func (p *Provider) dialAndInspect(ctx context.Context, t target) (hostFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, p.hostTimeout)
	defer cancel()
	c, err := p.dial(ctx, t)
	if err != nil {
		return hostFacts{}, err
	}
	defer c.close()

	return p.inspectHost(ctx, c)
}

// readAnswer returns the instance that the host is, by the mark on it, or nil. It corrects the ledger if that says
// something different.
func (p *Provider) readAnswer(a polledHost, h hostFacts) *provider.Instance {
	if !h.marked || h.mark.Environment != p.env.UUID {
		p.forgetUnmarked(a)
		return nil
	}

	if a.record.Machine != h.mark.Machine {
		if err := p.writeRecord(a.target, h.mark.Machine, h.mark.Token); err != nil {
			p.log.Warn("cannot record the machine's host", "machine", h.mark.Machine, "error", err)
		}
	}

	return new(p.newInstance(a.target, h.mark.Machine, h.running))
}

// forgetUnmarked removes the ledger's record of a host that was chosen for a machine but does not have that
// machine's mark. It does nothing while a start of the machine runs, which may write the mark.
func (p *Provider) forgetUnmarked(a polledHost) {
	if a.record.Machine == "" {
		return
	}
	lock := p.machineLock(a.record.Machine)
	if !lock.TryLock() {
		return
	}
	defer lock.Unlock()

	if err := p.removeRecord(a.target, a.record.Machine); err != nil {
		p.log.Warn("a record of a host stays", "machine", a.record.Machine, "error", err)
	}
}

func (p *Provider) isSilent(t target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.silentSince[t.String()]
	return ok && time.Since(since) < p.retryInterval
}

func (p *Provider) noteAnswer(t target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, was := p.silentSince[t.String()]; was {
		p.log.Info("a host answers again", "host", t.String())
	}
	delete(p.silentSince, t.String())
}

// noteSilence notes that the host does not answer, and warns the first time.
func (p *Provider) noteSilence(a polledHost, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if _, was := p.silentSince[a.target.String()]; !was {
		p.log.Warn("a host does not answer: its machine, if it is one, counts as running and is not started elsewhere",
			"host", a.target.String(), "machine", a.record.Machine, "error", err)
	}
	p.silentSince[a.target.String()] = time.Now()
}
