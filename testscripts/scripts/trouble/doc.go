// Package trouble holds the scripts about what fails and what hangs: how an operator sees
// it, finds out why, and ends it.
//
// The test binary is every applet; nothing imports this package.
package trouble
