// Package necoupdates holds the scripts about updates of boot servers as they go: barriers, components,
// what has gone wrong on the way, and the release after that.
//
// The test binary is every applet; nothing imports this package.
package necoupdates
