//go:build race

package need

// race reports whether the race detector is on.
const race = true
