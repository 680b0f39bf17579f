// Package uniter takes one unit through its life: it deploys the charm, runs the
// hooks in their order, keeps the queue of relation hooks, and resumes what an
// agent that died was in the middle of.
//
// Package decide says what is next; Run is the loop that reads what decides it, and
// executes its steps. The package knows neither machines nor sessions: agent hands it a way to commit that holds only
// while the process holds the machine's claim. Only package agent imports it.
package uniter
