// Package hooktools holds the scripts about the commands that run inside hooks, or by hand as in a hook. They
// test the hook tools, the allowed values of settings, other programs on a unit's socket, and juju do and
// run.
//
// The test binary is every applet.
package hooktools
