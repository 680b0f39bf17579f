// Package upgrades holds the scripts about charms and binaries: which ones are taken, what
// is refused, and how units and agents go from one to the next.
//
// The test binary is every applet; nothing imports this package.
package upgrades
