// Package store holds the scripts about the store of charms: what deploys by name, follows a
// channel, and what happens where the store fails or is away.
//
// The test binary is every applet; nothing imports this package.
package store
