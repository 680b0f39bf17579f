// Package agent holds the scripts about the background process: it is killed at each point of a
// hook, goes over to a newer binary or charm, and leads or follows.
//
// The test binary is every applet; nothing imports this package.
package agent
