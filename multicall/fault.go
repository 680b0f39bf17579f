package multicall

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// fault reads BIJOU_FAULT=point[:n] into a function that kills this process
// when that point is reached for the n-th time. Without Options.Faults, or
// without the variable, it is nil: nothing ever happens.
func fault(o Options) (func(point string), error) {
	value := os.Getenv("BIJOU_FAULT")
	if !o.Faults || value == "" {
		return nil, nil
	}
	return parseFault(value, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
}

// parseFault makes the function; die ends the process.
func parseFault(value string, die func()) (func(point string), error) {
	point, count, counted := strings.Cut(value, ":")
	n := 1
	if counted {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 {
			return nil, fmt.Errorf("BIJOU_FAULT=%q: want POINT:N with N from 1", value)
		}
	}
	var reached atomic.Int64
	return func(at string) {
		if at == point && reached.Add(1) == int64(n) {
			die()
		}
	}, nil
}
