// Package decide has the decisions of an update, as pure functions over a Snapshot of what the
// store says at one revision: Next, what the leader does next; Recover, Retry, Halt and
// Unregister, what follows from operators' commands; who is at fault when nothing moves. Load
// reads a Snapshot; a leader completes it with its Observations.
//
// It writes nothing, and knows of workers what they have written. updater/leader and the
// commands of multicall/neco import it.
package decide
