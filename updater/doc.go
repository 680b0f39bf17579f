// Package updater brings boot servers to a new release in lock-step. Its decisions
// are pure functions over snapshots: Next decides what the leader does, NextTask what
// a server's worker does, NextRolling and NextOnce what it does within a step that
// servers must coordinate; Recover, Retry and Halt decide on operators' commands. None
// of them does I/O or reads a clock. Around them stand the functions that read
// snapshots (Load) and write decisions (Apply), and the loops. Files whose names begin
// with leader or worker are that side's only.
//
// The promises, which hold whatever is killed, cut off or late:
//
//   - no server runs a step before all servers of the request have come to it;
//   - a step is run by workers of the request's version only;
//   - of a rolling component, at most one server's member is down for an update;
//   - once a request is stopped, no worker that hears of it begins a step;
//   - each attempt at a request ends in exactly one report.
//
// It does not know how services are run or packages installed. Only package multicall may import it.
package updater
