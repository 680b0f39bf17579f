package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"bijou/agent/pace"
	"bijou/agent/pulse"
	"bijou/agent/uniter"
	"bijou/agent/wake"
	"bijou/state"
)

// RunMachine is the machine agent: it announces the machine, keeps one unit
// agent running for each of its units, and marks the machine dead once it is
// dying and empty.
//
// It returns nil when ctx is done or the machine is dead, and an error only for
// what no waiting heals: the machine or the environment does not exist (any
// more). A store that is away is waited for.
//
// When ctx is done, a hook in flight gets 10 seconds to end, and its outcome is
// committed. After that its process group is killed, nothing of it is
// committed, and the next agent runs it again. When the claim is lost, a hook in flight is
// told to end at once (SIGTERM), killed after 10 seconds, and left to the other agent.
func RunMachine(ctx context.Context, o MachineOptions) error {
	return newMachine(o).run(ctx)
}

// RunUnit is one unit agent alone, under its own session. It returns nil when
// ctx is done or the unit is gone, and an error as RunMachine does. Another
// agent that runs the same unit is waited for. A hook in flight is treated as
// by RunMachine.
func RunUnit(ctx context.Context, o UnitOptions) error {
	return newAlone(o).run(ctx)
}

// machine is a machine agent. Its fields belong to the goroutine that runs it.
type machine struct {
	MachineOptions
	host  *host
	watch wake.Watch
	units map[string]bool // that an agent runs for
	ended chan ended
	wg    sync.WaitGroup
}

// ended says that a unit's agent has ended, and why.
type ended struct {
	unit string
	err  error
}

func newMachine(o MachineOptions) *machine {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("machine", o.Machine)
	return &machine{MachineOptions: o, units: map[string]bool{}, ended: make(chan ended)}
}

// run prepares, and goes on until ctx is done or the machine is dead.
func (m *machine) run(ctx context.Context) error {
	if err := m.prepare(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	return m.host.attend(ctx, m.Retire, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		err := m.work(ctx)
		stop()
		m.drain()
		m.watch.Close()
		return err
	})
}

// prepare reads what the agent's options leave open.
func (m *machine) prepare(ctx context.Context) error {
	env, err := environment(ctx, m.State, m.Log, func(v *state.View) error {
		_, err := v.Machine(m.Machine)
		return err
	})
	if err != nil {
		return err
	}
	claim, err := m.takeClaim(ctx)
	if err != nil {
		return err
	}
	if m.host, err = newHost(m.State, env, m.Dir, claim, m.Log); err != nil {
		return err
	}
	m.host.tools, m.host.fault = m.Tools, m.Fault
	m.host.presence.share(m.Process)
	m.host.presence.ready, m.host.pulse = m.Ready, m.Pulse
	m.host.slots = uniter.NewHookLimiter(m.concurrency(env))
	return nil
}

// takeClaim makes this process the one that runs the machine.
func (m *machine) takeClaim(ctx context.Context) (claim *state.Claim, err error) {
	m.fault("before-claim")
	err = outlast(ctx, m.Log, func() (err error) {
		claim, err = m.State.TakeClaim(ctx, m.Machine, m.Claimant)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot run machine %s: %w", m.Machine, err)
	}
	m.fault("after-claim")
	return claim, nil
}

// concurrency is how many hooks may run at a time. Charms run apt, and dpkg has
// one lock; only on "local", where machines are no machines, more is the rule.
func (m *machine) concurrency(env state.Environment) int {
	switch {
	case env.HookConcurrency() > 0:
		return env.HookConcurrency()
	case m.HookConcurrency > 0:
		return m.HookConcurrency
	case env.Provider == state.ProviderLocal:
		return runtime.NumCPU()
	}
	return 1
}

// work goes step by step until ctx is done, the machine is dead, or the store is
// gone.
func (m *machine) work(ctx context.Context) error {
	told := m.host.trouble.shown(state.MachineAgent(m.Machine))
	running := false
	loop := m.Pulse.Loop("machine agent")
	defer loop.Rest()
	var again pace.Pacer
	for {
		loop.Turn()
		finished := false
		err := ctx.Err()
		if err == nil && !running {
			err = m.start(ctx)
			running = err == nil
		} else if err == nil {
			finished, err = m.step(ctx, loop)
		}
		if finished || ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) {
			return err
		}
		if err == nil {
			told(ctx, nil, time.Time{})
			again.Reset()
			continue
		}
		pause := again.Next()
		told(ctx, err, time.Now().Add(pause))
		loop.Rest()
		_ = pace.Sleep(ctx, pause)
	}
}

// duties are what a machine agent has to see to.
type duties struct {
	life     state.Life
	units    []string
	env      state.Environment
	revision int64
}

// step starts what agents are missing, and waits for a change.
func (m *machine) step(ctx context.Context, loop *pulse.Loop) (finished bool, err error) {
	var d duties
	err = m.State.View(ctx, func(v *state.View) (err error) {
		d, err = m.read(v)
		return err
	})
	if err != nil {
		return false, err
	}
	m.host.slots.Resize(m.concurrency(d.env))
	for _, unit := range d.units {
		m.keep(ctx, unit)
	}
	if d.life != state.Alive && len(d.units)+len(m.units) == 0 {
		return true, m.die(ctx, d.life)
	}
	return false, m.wait(ctx, d.revision, loop)
}

// read reads the duties. A machine without a record is dead.
func (m *machine) read(v *state.View) (d duties, err error) {
	found, err := v.Machine(m.Machine)
	if errors.Is(err, state.ErrNotFound) {
		found.Life, err = state.Dead, nil
	}
	if err != nil {
		return d, err
	}
	d.life = found.Life
	if d.units, err = v.MachineUnits(m.Machine); err != nil {
		return d, err
	}
	if d.env, err = v.Environment(); err != nil {
		return d, err
	}
	d.revision, err = v.Revision()
	return d, err
}

// keep runs an agent for the unit, unless one runs.
func (m *machine) keep(ctx context.Context, unit string) {
	if m.units[unit] {
		return
	}
	m.units[unit] = true
	m.wg.Go(func() {
		err := m.host.supervise(ctx, unit)
		m.ended <- ended{unit, err}
	})
}

// wait waits for a change on the machine or of the environment's configuration, or
// for the end of a unit's agent.
func (m *machine) wait(ctx context.Context, revision int64, loop *pulse.Loop) error {
	err := m.watch.Renew(ctx, m.State, revision, nil, state.WatchMachine(m.Machine), state.WatchEnvironment())
	if err != nil {
		return err
	}
	loop.Rest()
	select {
	case <-m.watch.Events():
		_, _, err := m.watch.Take() // what it was does not matter: the next step reads it all
		return err
	case e := <-m.ended:
		delete(m.units, e.unit)
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain waits for all unit agents, which were told to end.
func (m *machine) drain() {
	for len(m.units) > 0 {
		e := <-m.ended
		delete(m.units, e.unit)
	}
	m.wg.Wait()
}

// die marks the machine as taken down.
func (m *machine) die(ctx context.Context, life state.Life) error {
	if life == state.Dead {
		return nil
	}
	err := m.host.presence.as(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
		return tx.SetMachineDead(m.Machine)
	})
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}
