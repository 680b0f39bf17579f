package applet

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// NewFault returns a function that kills this process when the point of
// BIJOU_FAULT=point[:n] is reached for the n-th time; nil unless it is enabled, as
// in tests only, and the variable is set.
func NewFault(enabled bool) (func(point string), error) {
	value := os.Getenv("BIJOU_FAULT")
	if !enabled || value == "" {
		return nil, nil
	}
	return parseFault(value, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
}

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
