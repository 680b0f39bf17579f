// Package units holds the scripts about what charms' units live through: their hooks, relations and
// settings, actions and resources, and that what is one unit's is nobody else's.
//
// The test binary is every applet; nothing imports this package.
package units
