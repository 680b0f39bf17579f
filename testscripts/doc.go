// Package testscripts is where bijou's behaviour is promised: scripts (*.txtar)
// that use the applets as people and charms do, and the tests that hold the
// code against the house's laws.
//
// The test binary is every applet: it looks at argv[0] and is juju, the machine
// agent, or a hook tool. Nothing imports this package.
package testscripts
