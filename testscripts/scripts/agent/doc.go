// Package agent holds what is promised of the background process: it is killed at
// each point of a hook, goes over to a binary that only the state has, runs a single
// unit, leads or follows.
//
// The test binary is every applet; nothing imports this package.
package agent
