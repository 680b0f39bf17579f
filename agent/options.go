// Package agent is the machine agent and the unit agent: the loops that bring a
// machine's units up, run their hooks and take them down again.
//
// It decides nothing about hooks itself: agent/hook knows their order,
// agent/uniter what comes next, agent/hookctx what a hook sees, agent/hookexec
// how it is run. Only multicall (and its tests) imports it.
package agent

import (
	"log/slog"

	"bijou/agent/pulse"
	"bijou/state"
	"bijou/state/secret"
)

// Fault is called at named points of an agent's work, so that a test main can
// kill the process there. nil does nothing.
//
// Every commit has two, before-STEP and after-STEP, but that by which a restored unit
// begins: nothing has begun before it, and it is made again. The steps are:
//
//	claim        the machine is this process's to run
//	machine      the machine runs, and where it is reached
//	recover      the agent has restarted
//	deploy       a charm is about to be put in place
//	deployed     it is there
//	enqueue      what has arrived is queued
//	enter        the unit is a member of a relation
//	begin        a hook is in flight, and what has arrived is queued
//	success      it is done, with all that it has written, and the next may be in flight
//	failure      it has failed, or was found dead
//	action-end   an action or a command has ended
//	resolve      a failed hook counts as done
//	leave        the unit is no member of a relation any more
//	retire       a subordinate's unit is to leave
//	debug-end    a debug session is over
//	storage-made      a storage's folder is about to be made
//	storage-bound     the unit finds it where it is to be
//	storage-released  the unit has it no more
//	dead         the unit is down
//
// The others, in the order in which a hook or a charm comes to them:
//
//	before-spawn     the hook is in flight, no process is made
//	after-spawn      its process is made, and held back
//	after-note       the file says which process it is
//	after-let-go     the hook's process runs
//	after-exit       the hook has exited, nothing of it is committed
//	after-commit     the hook's outcome is committed
//	before-unpack    nothing of a new charm is in the unit's folder
//	before-swap      it is there, beside the old one
//	after-exchange   it is in the place of the old one, which is beside it
//	after-swap       the old one is gone
//	before-storage-removed  all is there that a storage holds
//	after-storage-removed   nothing is
//	before-clear     the unit is down, and its folder is there
//	after-clear      its folder is gone
type Fault func(point string)

// Options hold what an agent of a machine and one of a unit alone have in common.
type Options struct {
	State *state.State

	// Dir is the machine's folder, ENVDIR/machines/ID; the units' folders lie below
	// it, agents/unit-SERVICE-N. It is made if it is missing.
	Dir string
	// Tools is the absolute path of the folder that holds the hook tools of
	// this version of the agent.
	Tools string

	// Claimant is this process, for the claim of the machine.
	Claimant state.Claimant

	// Ready, unless it is nil, is called once the agent is announced.
	Ready func()
	// Watchdog watches the agent's loops; may be nil.
	Watchdog *pulse.Watchdog

	SecretKeys secret.Keeper // opens and seals the environment's secrets

	// Drain, when it is closed, lets no hook begin any more, and ends the agent
	// once those in flight have ended, however long they take. nil: never.
	Drain <-chan struct{}

	Log   *slog.Logger // nil: slog.Default()
	Fault Fault
}

// MachineOptions say which machine an agent serves, and from where.
type MachineOptions struct {
	Options
	Machine string // its id, "0"
	// Process is the session that the agents share with other roles of their
	// process, which ends it; nil: they have one of their own.
	Process *state.SharedSession
}

// UnitOptions say which unit an agent serves alone, without a machine agent. The folder and
// the claim are those of the unit's machine.
type UnitOptions struct {
	Options
	Unit string // "wordpress/0"
}
