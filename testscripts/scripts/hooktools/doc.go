// Package hooktools holds the scripts about what runs inside of hooks, and as hooks by hand: the hook
// tools, what settings can hold, other programs on a unit's socket, juju do and run.
//
// The test binary is every applet; nothing imports this package.
package hooktools
