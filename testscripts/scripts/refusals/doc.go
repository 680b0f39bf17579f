// Package refusals holds the scripts about what an operator types wrong, or in bad faith: it is
// refused in one line, with the right exit code, and changes nothing.
//
// The test binary is every applet; nothing imports this package.
package refusals
