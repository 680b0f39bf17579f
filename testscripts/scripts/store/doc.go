// Package store holds the scripts about Charmhub, the store of charms: deployment by name, channels, and
// outages and faults of the store.
//
// The test binary is every applet.
package store
