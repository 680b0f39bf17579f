// Package agent contains the machine agent and the unit agent: the loops that start a machine's units, run
// their hooks and shut the units down.
//
// It decides nothing about hooks itself. agent/hook defines their order, agent/uniter chooses the next step,
// agent/hookctx answers a hook's tools, and agent/hookexec runs a hook's process.
package agent

import (
	"log/slog"

	"bijou/agent/pulse"
	"bijou/state"
	"bijou/state/secret"
)

// Fault is called at named points of an agent's work, so that a test can kill the process there. A nil Fault
// does nothing.
//
// Each commit has two points, before-STEP and after-STEP. There is one exception: the commit that compares a
// restored unit with its directory has no points, since the next agent repeats it. Each step commits the
// following:
//
//	claim        this process runs the machine
//	machine      the machine is running, and its addresses
//	recover      the agent has restarted
//	deploy       the agent is about to replace the unit's charm
//	deployed     the new charm is in place
//	enqueue      arrivals are in the queue
//	enter        the unit is a member of a relation
//	begin        a hook is in flight, and arrivals are in the queue
//	success      the hook has succeeded, its changes, and perhaps the beginning of the next hook
//	failure      the hook has failed, or its process outlived its agent
//	action-end   an action or a command has ended
//	resolve      a failed hook counts as done
//	leave        the unit is no longer a member of a relation
//	retire       a subordinate unit is dying
//	debug-end    a debug session is over
//	storage-made      the agent is about to make a storage's directory
//	storage-bound     the storage is bound to its location
//	storage-released  the unit no longer has the storage
//	dead         the unit is dead
//
// The other points, in the order in which a hook, a charm, a storage or a unit reaches them:
//
//	before-spawn     the hook is in flight, and has no process
//	after-spawn      the hook's process exists, and is held back
//	after-note       the process is recorded in a file
//	after-let-go     the process is released
//	after-exit       the hook has exited, and none of its changes are committed
//	after-commit     the hook's outcome is committed
//	before-unpack    the unit's directory contains no file of the new charm
//	before-swap      the new charm is unpacked beside the old charm
//	after-exchange   the new charm is in place, and the old charm beside it
//	after-swap       the old charm is removed
//	before-storage-removed  the storage's directory is still there
//	after-storage-removed   the storage's directory is removed
//	before-clear     the unit is dead, and its directory is still there
//	after-clear      the unit's directory is removed
type Fault func(point string)

// Options are common to [RunMachine] and [RunUnit].
type Options struct {
	State *state.State

	// Dir is the machine's directory, ENVDIR/machines/ID. The agent creates the directory if it is missing.
	// The directory contains the units' directories, agents/unit-SERVICE-N.
	Dir string
	// Tools is the absolute path of the directory with the hook tools of this version of the agent.
	Tools string

	// Claimant describes this process in the machine's claim.
	Claimant state.Claimant

	// Ready is called once, when the first agent of the process is announced. It can be nil.
	Ready func()
	// Watchdog watches the agent's loops. It can be nil.
	Watchdog *pulse.Watchdog

	SecretKeys secret.Keeper // opens and seals the environment's secrets

	// Drain stops the agent gracefully. After it is closed, no hook begins. The agent ends once all hooks in
	// flight have ended, regardless of how long they take. A nil Drain never stops the agent.
	Drain <-chan struct{}

	Log   *slog.Logger // slog.Default() if nil
	Fault Fault
}

// MachineOptions configure [RunMachine].
type MachineOptions struct {
	Options
	Machine string // the machine's id, "0"
	// Process is a session that the agents share with other roles of this process. The caller ends the
	// session. If Process is nil, the agents open their own session.
	Process *state.SharedSession
}

// UnitOptions configure [RunUnit]. Dir and Claimant belong to the unit's machine.
type UnitOptions struct {
	Options
	Unit string // "wordpress/0"
}
