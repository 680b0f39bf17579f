// Package decide decides what a unit does next: which hook it runs, what it queues, which
// relation it enters or leaves. Next takes a Snapshot of all that matters, and returns a
// Step; it does no I/O and reads no clock, so that every order of events can be tested.
//
// Who reads the snapshot and executes the step is package uniter, which alone imports it.
package decide
