// Package trouble holds the scripts about failures and hangs: how an operator sees them, finds their
// causes, and ends them.
//
// The test binary is every applet.
package trouble
