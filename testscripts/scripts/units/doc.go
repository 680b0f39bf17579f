// Package units holds the scripts about the life of one unit: its hooks, actions and resources, and
// their isolation from other units.
//
// The test binary is every applet.
package units
