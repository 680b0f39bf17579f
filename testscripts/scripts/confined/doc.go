// Package confined holds the scripts about agents that reach their state by a gateway, which lets each machine do what
// its units may, and runs scripts of other suites over it.
//
// The test binary is every applet; nothing imports this package.
package confined
