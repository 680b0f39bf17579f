package constraints

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"bijou/state/lazyregexp"
)

// sizePattern is of a float with a suffix; no suffix is M.
var sizePattern = lazyregexp.New(`^([0-9]+\.?[0-9]*|\.[0-9]+)([MGTP]?)$`)

// maxSize is the greatest number of MB that a float holds exactly.
const maxSize = 1 << 53

// parseSize reads "1.5G" as MB, rounded up: 1536.
func parseSize(text string) (uint64, error) {
	parts := sizePattern.Compiled().FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("must be a non-negative float with optional M/G/T/P suffix")
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	scale := map[string]float64{"": 1, "M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}[parts[2]]
	if err != nil || n*scale > maxSize {
		return 0, fmt.Errorf("%.40q is too much", text)
	}
	return uint64(math.Ceil(n * scale)), nil
}

// formatSize prints 0, which is none, as "".
func formatSize(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10) + "M"
}
