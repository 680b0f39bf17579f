// Package agent holds the tests of the background process. It is killed at each point of a hook,
// switches to a binary that only the state has, runs a single unit, and leads or follows.
//
// The test binary is every applet.
package agent
