// Package upgrades holds the scripts about revisions of charms and binaries: which ones are taken,
// which are refused, and how units and agents move from one to the next.
//
// The test binary is every applet.
package upgrades
