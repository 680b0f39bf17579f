//go:build !race

package need

// race tells if the race detector watches.
const race = false
