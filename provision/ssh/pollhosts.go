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

// Instances queries all hosts in the pool, and all hosts in the ledger, in parallel and within pollTimeout. If
// the query of a host fails or is skipped, the machine that the ledger records for the host counts as running.
// The machine may be running on the other side of a network partition, so it must not be started on a
// different host.
//
// If the query of a host fails before pollTimeout, Instances skips the host for retryInterval. Otherwise hosts
// that do not answer could use all the time of each call, and other hosts would never be queried.
func (p *Provider) Instances(ctx context.Context) ([]provider.Instance, error) {
	hosts, err := p.listHosts()
	if err != nil {
		return nil, err
	}

	pollCtx, cancel := context.WithTimeout(ctx, p.pollTimeout)
	defer cancel()
	answers := make([]*provider.Instance, len(hosts))
	// Each running query takes one slot.
	slots := make(chan struct{}, maxParallelPolls)
	var queries sync.WaitGroup

	for i, host := range hosts {
		queries.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				answers[i] = p.pollHost(pollCtx, host)
			case <-pollCtx.Done():
				answers[i] = p.presumeRunning(host)
			}
		})
	}

	queries.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	var found []provider.Instance
	for _, answer := range answers {
		if answer != nil {
			found = append(found, *answer)
		}
	}

	// Machine IDs are numbers.
	slices.SortFunc(found, func(a, b provider.Instance) int {
		n, _ := strconv.Atoi(a.Machine)
		m, _ := strconv.Atoi(b.Machine)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a.ID, b.ID))
	})

	return found, nil
}

// listHosts lists the hosts to query: the hosts in the ledger, and the other hosts in the pool. It leaves out a
// record in the ledger that cannot be read.
func (p *Provider) listHosts() (hosts []polledHost, err error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return nil, err
	}

	for _, r := range records {
		t, err := r.parseHost()
		if err != nil {
			// If the host of the record is in the pool, the host's answer will replace the record.
			continue
		}
		// A fingerprint in the pool takes precedence over the record's.
		hosts = append(hosts, polledHost{poolMember(pool, t).target, r})
	}

	for _, m := range pool {
		isListed := slices.ContainsFunc(hosts, func(h polledHost) bool {
			return h.target.String() == m.target.String()
		})
		if !isListed {
			hosts = append(hosts, polledHost{target: m.target})
		}
	}

	return hosts, nil
}

// pollHost queries one host, and returns its instance. It returns nil if the host is not a machine of this
// environment. If the query fails, or is skipped since an earlier one has failed, pollHost returns the
// recorded machine as running, or nil if there is no record.
func (p *Provider) pollHost(ctx context.Context, host polledHost) *provider.Instance {
	if p.isSilent(host.target) {
		return p.presumeRunning(host)
	}

	facts, err := p.dialAndInspect(ctx, host.target)
	if err != nil {
		// If ctx is done, the host may not have had the full hostTimeout to answer.
		if ctx.Err() == nil {
			p.noteSilence(host, err)
		}
		return p.presumeRunning(host)
	}

	p.noteAnswer(host.target)
	return p.readAnswer(host, facts)
}

// presumeRunning returns a running instance for the machine that the ledger records for the host. It returns
// nil if there is no record.
func (p *Provider) presumeRunning(host polledHost) *provider.Instance {
	if host.record.Machine == "" {
		return nil
	}
	const running = true
	return new(p.newInstance(host.target, host.record.Machine, running))
}

// dialAndInspect connects to the host and inspects it, within hostTimeout.
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

// readAnswer returns the instance that the mark on the host names, or nil if the host has no mark of this
// environment. If the ledger does not record that machine for the host, readAnswer writes a record. If there
// is no such mark, it may remove the host's record; see forgetUnmarked. It only logs an error.
func (p *Provider) readAnswer(host polledHost, facts hostFacts) *provider.Instance {
	marked := facts.mark
	if !facts.marked || marked.Environment != p.env.UUID {
		p.forgetUnmarked(host)
		return nil
	}

	if host.record.Machine != marked.Machine {
		if err := p.writeRecord(host.target, marked.Machine, marked.Token); err != nil {
			p.log.Warn("cannot record the machine's host", "machine", marked.Machine, "error", err)
		}
	}

	return new(p.newInstance(host.target, marked.Machine, facts.running))
}

// forgetUnmarked removes the ledger's record of a host that was chosen for a machine but has no mark of this
// environment. It does nothing for a host without a record, or during a start or stop of the recorded machine. A
// start may be about to write the mark.
func (p *Provider) forgetUnmarked(host polledHost) {
	machine := host.record.Machine
	if machine == "" {
		return
	}
	lock := p.machineLock(machine)
	if !lock.TryLock() {
		return
	}
	defer lock.Unlock()

	if err := p.removeRecord(host.target, machine); err != nil {
		p.log.Warn("cannot remove the record of a host", "machine", machine, "error", err)
	}
}

// isSilent reports whether the host did not answer at an attempt within the last retryInterval.
func (p *Provider) isSilent(t target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lastAttempt, ok := p.silentAt[t.String()]
	return ok && time.Since(lastAttempt) < p.retryInterval
}

// noteAnswer records that the host has answered, and logs that if the host was silent before.
func (p *Provider) noteAnswer(t target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, wasSilent := p.silentAt[t.String()]; wasSilent {
		p.log.Info("a host answers again", "host", t.String())
	}
	delete(p.silentAt, t.String())
}

// noteSilence records that the host did not answer, and logs a warning unless the host was silent before.
func (p *Provider) noteSilence(host polledHost, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	name := host.target.String()
	if _, wasSilent := p.silentAt[name]; !wasSilent {
		p.log.Warn("a host does not answer: if it is a machine, that machine counts as running and is not started elsewhere",
			"host", name, "machine", host.record.Machine, "error", err)
	}
	p.silentAt[name] = time.Now()
}
