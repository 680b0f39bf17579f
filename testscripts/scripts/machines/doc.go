// Package machines holds the scripts about machines, who makes them, and where an environment's state
// is: providers and their processes, constraints, series, moves from store to store.
//
// The test binary is every applet; nothing imports this package.
package machines
