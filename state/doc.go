// Package state is the shared in-process state library: every entity of an
// environment (charms, services, units, machines, relations, settings, what unit
// agents are in the middle of, logs) over one key-value store.
//
// Everything durable goes through it. A View reads at one revision; an Update
// commits only if nothing that it read has changed, and is rerun otherwise; a
// Watcher says which keys changed. It decides nothing about when hooks run or
// where instances start: the roles (agent, provision, multicall) do, and meet
// here. It is not the store itself (state/store), does not read charms
// (state/charm), and imports no role. Every role may import it.
package state
