// Package trouble holds the scripts about failures and hangs: how an operator notices them, finds their
// causes, and resolves them.
//
// The test binary is every applet.
package trouble
