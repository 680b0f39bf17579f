// Package upgrades holds the scripts about revisions of charms and binaries: which revisions are accepted,
// which are refused, and how units and agents switch from one to the next.
//
// The test binary is every applet.
package upgrades
