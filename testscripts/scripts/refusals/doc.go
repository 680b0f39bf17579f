// Package refusals holds the scripts about an operator's mistakes and malicious input. Each is refused
// in one line, with the right exit code, and changes nothing.
//
// The test binary is every applet.
package refusals
