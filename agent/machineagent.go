package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"bijou/agent/pulse"
	"bijou/agent/uniter"
	"bijou/agent/wake"
	"bijou/state"
	"bijou/state/backoff"
)

// RunMachine runs a machine agent. It announces the machine, and keeps one unit agent running for each of its
// units. Once the machine is dying and has no units, it marks the machine dead.
//
// It returns nil when ctx is done or the machine is dead. It waits for a store that cannot be reached, and
// returns an error only if waiting cannot help. This is the case if the environment or the machine does not
// exist, if the store is gone, or if another agent has the machine's claim.
//
// When ctx is done, a hook in flight gets 10 seconds to end, and its outcome is committed. After that its
// process group is killed, none of its changes are committed, and the next agent runs the hook again. When
// the claim is lost, a hook in flight gets SIGTERM at once, and SIGKILL after 10 seconds. None of its changes
// are committed, and the agent with the claim runs the hook again.
func RunMachine(ctx context.Context, o MachineOptions) error {
	o.Log = cmp.Or(o.Log, slog.Default()).With("machine", o.Machine)
	m := &machineAgent{MachineOptions: o, units: map[string]bool{}, exits: make(chan unitExit)}
	return m.run(ctx)
}

// machineAgent is the state of RunMachine. Only the goroutine that runs it uses its fields, except exits.
type machineAgent struct {
	MachineOptions
	host  *host
	watch wake.Watch
	units map[string]bool // the units whose agents are running
	exits chan unitExit
	wg    sync.WaitGroup

	recordedRunning bool // this agent has recorded that it is running
}

// unitExit reports that a unit's agent has ended. err is nil if the unit is gone.
type unitExit struct {
	unit string
	err  error
}

// run runs the machine's agent and its units' agents. It returns when all of them have ended.
func (m *machineAgent) run(ctx context.Context) error {
	if err := m.prepareHost(ctx); err != nil {
		return unlessDone(ctx, err)
	}

	return m.host.runWhileClaimed(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		err := m.runSteps(ctx)

		// The units' agents end with ctx. Each agent then sends its exit, and blocks until the exit is
		// received.
		stop()
		for len(m.units) > 0 {
			e := <-m.exits
			delete(m.units, e.unit)
		}
		m.wg.Wait()

		m.watch.Close()
		return err
	})
}

// prepareHost reads the environment, checks that the machine exists, takes the machine's claim, and creates
// the host that its unit agents share. It waits while the store cannot be reached.
func (m *machineAgent) prepareHost(ctx context.Context) error {
	env, err := awaitEnvironment(ctx, m.State, m.Log, func(v *state.View) error {
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
	if m.host, err = newHost(m.Options, env, claim); err != nil {
		return err
	}

	if m.Process != nil { // other roles of this process use the same session
		m.host.presence.process = m.Process
		m.host.presence.ownSession = false
	}
	m.host.limiter = uniter.NewHookLimiter(hookConcurrency(env))
	return nil
}

// takeClaim takes the machine's claim, so that no second agent runs the machine. It retries as
// [retryTransient] does.
func (m *machineAgent) takeClaim(ctx context.Context) (*state.Claim, error) {
	m.faultPoint("before-claim")
	claim, err := retryTransient(ctx, m.Log, func() (*state.Claim, error) {
		return m.State.TakeClaim(ctx, m.Machine, m.Claimant)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot run machine %s: %w", m.Machine, err)
	}

	m.faultPoint("after-claim")
	return claim, nil
}

// runSteps records that the machine's agent is running, and then takes one step after another. It returns
// when the machine is dead, ctx is done or the store is gone. If a step fails, runSteps shows the error in
// the agent's status and retries, with a pause that grows each time.
func (m *machineAgent) runSteps(ctx context.Context) error {
	report := m.host.outages.agentReporter(state.MachineAgent(m.Machine))
	loop := m.Watchdog.Loop("machine agent")
	defer loop.MarkUnbounded()
	var retry backoff.Exponential

	for {
		loop.MarkBusy()
		finished, err := m.takeStep(ctx, loop)
		if finished || ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) {
			return err
		}

		if err == nil {
			report(ctx, nil, time.Time{}) // the step has succeeded
			retry.Reset()
			continue
		}

		pause := retry.Next()
		report(ctx, err, time.Now().Add(pause))
		loop.MarkUnbounded()
		_ = backoff.Sleep(ctx, pause) // if ctx is done, takeStep returns its error
	}
}

// machineState holds everything on which one step of the machine's agent depends.
type machineState struct {
	life     state.Life
	units    []string // the machine's units
	removing []string // the ids of storage to remove
	env      state.Environment
	revision int64 // the revision at which the records were read
}

// runStep reads the machine's records once and acts on them. It adapts how many hooks can run at a time, starts
// missing unit agents, and removes storage. If the machine is not alive and no unit is left, it marks the machine
// as dead and returns finished true. Otherwise it waits for a change.
func (m *machineAgent) runStep(ctx context.Context, loop *pulse.Loop) (finished bool, err error) {
	current, err := state.Read(ctx, m.State, m.readState)
	if err != nil {
		return false, err
	}

	m.host.limiter.Resize(hookConcurrency(current.env))
	for _, unit := range current.units {
		m.ensureUnitAgent(ctx, unit)
	}

	for _, id := range current.removing {
		if err := m.removeStorage(ctx, id, current.env.Name); err != nil {
			// This step does not reach waitForChange, which usually takes note of unit agents that have ended.
			m.takeExits()
			return false, err
		}
	}

	noUnits := len(current.units) == 0 && len(m.units) == 0
	if current.life != state.Alive && noUnits {
		err := m.markDead(ctx, current.life)
		return err == nil, err
	}

	return false, m.waitForChange(ctx, current.revision, loop)
}

// readState reads everything on which the next step depends, in one view. A machine whose record is gone counts
// as dead. If the record of the machine's storage is damaged, readState returns no storage to remove.
func (m *machineAgent) readState(v *state.View) (s machineState, err error) {
	if err := v.PrefetchMachine(m.Machine); err != nil {
		return s, err
	}

	found, err := v.Machine(m.Machine)
	if errors.Is(err, state.ErrNotFound) {
		found.Life = state.Dead
		err = nil
	}
	if err != nil {
		return s, err
	}
	s.life = found.Life

	storage, err := v.MachineStorage(m.Machine)
	isDamaged := v.Skips(err)
	if err != nil && !isDamaged {
		return s, err
	}
	if !isDamaged {
		s.removing = storage.Removing
	}

	if s.units, err = v.MachineUnits(m.Machine); err != nil {
		return s, err
	}
	if s.env, err = v.Environment(); err != nil {
		return s, err
	}
	s.revision, err = v.Revision()
	return s, err
}

// ensureUnitAgent starts the unit's agent unless it is running. At its end the agent sends its error to m.exits.
func (m *machineAgent) ensureUnitAgent(ctx context.Context, unit string) {
	if m.units[unit] {
		return
	}

	m.units[unit] = true
	m.wg.Go(func() { m.exits <- unitExit{unit, m.host.superviseUnit(ctx, unit)} })
}

// waitForChange waits until the machine's records or the environment's record have changed since the revision,
// or a unit's agent has ended. It returns the error of a unit's agent, of the watch or of ctx.
func (m *machineAgent) waitForChange(ctx context.Context, revision int64, loop *pulse.Loop) error {
	// The watch needs no names to tell its scopes apart, since they never change.
	err := m.watch.Renew(ctx, m.State, revision, nil, state.WatchMachine(m.Machine), state.WatchEnvironment())
	if err != nil {
		return err
	}
	loop.MarkUnbounded()

	select {
	case <-m.watch.Events():
		// The keys do not matter, since the next step reads all records again.
		_, _, err := m.watch.Take()
		return err
	case e := <-m.exits:
		delete(m.units, e.unit)
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeExits removes the units whose agents have ended from m.units. It does not wait. It drops these agents'
// errors, since its caller returns a different error.
func (m *machineAgent) takeExits() {
	for {
		select {
		case e := <-m.exits:
			delete(m.units, e.unit)
		default:
			return
		}
	}
}

// markDead marks the machine as dead in the state, unless life is already dead or the machine's record is gone.
func (m *machineAgent) markDead(ctx context.Context, life state.Life) error {
	if life == state.Dead {
		return nil
	}

	err := m.host.presence.updaterFor(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
		return tx.SetMachineDead(m.Machine)
	})
	return state.IgnoreNotFound(err)
}

// takeStep takes the machine's next step. The first step, until it succeeds, is to record that the agent is
// running. finished is true once the machine is dead.
func (m *machineAgent) takeStep(ctx context.Context, loop *pulse.Loop) (finished bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}

	if !m.recordedRunning {
		err := m.recordRunning(ctx)
		m.recordedRunning = err == nil
		return false, err
	}

	return m.runStep(ctx, loop)
}

// recordRunning records the machine's addresses, its tools, and that its agent is running. Afterwards it
// removes the directories of units that the machine no longer has.
func (m *machineAgent) recordRunning(ctx context.Context) error {
	var units []string
	m.faultPoint("before-machine")

	err := m.host.presence.updaterFor(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
		found, err := tx.Machine(m.Machine)
		if err != nil {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}

		if units, err = tx.MachineUnits(m.Machine); err != nil {
			return err
		}
		if err := tx.SetAddresses(m.Machine, chooseAddresses(found.Addresses, env.Provider)); err != nil {
			return err
		}
		if err := tx.SetMachineTools(m.Machine, filepath.Base(m.Tools)); err != nil {
			return err
		}

		return tx.SetMachineStatus(m.Machine, state.MachineRunning, "")
	})
	if err != nil {
		return err
	}

	m.faultPoint("after-machine")
	m.Log.Info("machine agent runs", "units", len(units))
	return m.removeStaleFolders(units)
}

// faultPoint tells the Fault of a test, if there is one, that the agent has reached the point.
func (m *machineAgent) faultPoint(point string) {
	if m.Fault != nil {
		m.Fault(point)
	}
}

// chooseAddresses returns the machine's recorded addresses. The address of this host replaces a missing private
// address, and the resulting private address replaces a missing public address. All machines of provider "local"
// are this host, and reach each other at the loopback address.
func chooseAddresses(recorded state.Addresses, provider string) state.Addresses {
	own := "127.0.0.1"
	if provider != state.ProviderLocal {
		own = hostAddress()
	}

	return state.Addresses{
		Private: cmp.Or(recorded.Private, own),
		Public:  cmp.Or(recorded.Public, recorded.Private, own),
	}
}

// hostAddress returns the first address of this host that is not a loopback or link-local address. If there is
// none, it returns 127.0.0.1.
func hostAddress() string {
	addresses, _ := net.InterfaceAddrs() // no addresses after an error
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}

	return "127.0.0.1"
}
