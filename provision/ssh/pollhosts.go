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

// polledHost is a host that Instances queries for its machine.
type polledHost struct {
	target target
	record hostRecord // the ledger's record of its machine, or the zero hostRecord
}

// maxParallelPolls is the maximum number of hosts that are queried at the same time.
const maxParallelPolls = 32

// Instances queries all hosts in the pool, and all hosts that are machines, in parallel and in limited time.
// A known machine whose host does not answer, or refuses the login, counts as running. It may be running on
// the other side of a network partition, so it must not be started on a different host. A host that does not
// answer is skipped for a while, so that the next round first queries the hosts for which there was no time.
func (p *Provider) Instances(ctx context.Context) ([]provider.Instance, error) {
	hosts, err := p.listHosts()
	if err != nil {
		return nil, err
	}

	round, cancel := context.WithTimeout(ctx, p.pollTimeout)
	defer cancel()
	answers := make([]*provider.Instance, len(hosts))
	// Each query of a host takes one slot.
	seats := make(chan struct{}, maxParallelPolls)
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

	// The ids of machines are numbers.
	slices.SortFunc(found, func(a, b provider.Instance) int {
		n, _ := strconv.Atoi(a.Machine)
		m, _ := strconv.Atoi(b.Machine)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a.ID, b.ID))
	})

	return found, nil
}

// listHosts lists the hosts to query: the hosts in the ledger, and the other hosts in the pool.
func (p *Provider) listHosts() (hosts []polledHost, err error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return nil, err
	}

	for _, r := range records {
		t, err := r.parseHost()
		if err != nil {
			// If its host is in the pool, the host's answer replaces the record.
			continue
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

// pollHost queries one host. It returns nil if the host is not a machine of this environment. It records a
// host as silent only if it has waited for the full hostTimeout.
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
	const running = true
	return new(p.newInstance(a.target, a.record.Machine, running))
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

// readAnswer returns the instance according to the mark on the host, or nil. It corrects the ledger if the
// ledger differs from the mark.
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

// forgetUnmarked removes the ledger's record of a host that was chosen for a machine but does not have the
// machine's mark. It does nothing during a start of that machine, which may be about to write the mark.
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
		p.log.Warn("cannot remove the record of a host", "machine", a.record.Machine, "error", err)
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

// noteSilence records that the host does not answer, and logs a warning the first time.
func (p *Provider) noteSilence(a polledHost, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if _, was := p.silentSince[a.target.String()]; !was {
		p.log.Warn("a host does not answer: if it is a machine, that machine counts as running and is not started elsewhere",
			"host", a.target.String(), "machine", a.record.Machine, "error", err)
	}
	p.silentSince[a.target.String()] = time.Now()
}
