// Package units holds the scripts about what one unit lives through: its hooks, actions and
// resources, and that what is one unit's is nobody else's.
//
// The test binary is every applet; nothing imports this package.
package units
