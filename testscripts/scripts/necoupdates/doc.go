// Package necoupdates holds the scripts about running updates of boot servers: barriers, components,
// failures on the way, and the next release.
//
// The test binary is every applet.
package necoupdates
