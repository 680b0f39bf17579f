// Package store holds the scripts about the store of charms: deployment by name, channels, and a store
// that fails or is away.
//
// The test binary is every applet.
package store
