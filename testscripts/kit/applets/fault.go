package applets

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Fault returns a function that kills this process with SIGKILL when it reaches the point of
// BIJOU_FAULT=point[:n] for the n-th time. Without the variable it returns nil.
func Fault() func(point string) {
	value := os.Getenv("BIJOU_FAULT")
	if value == "" {
		return nil
	}
	fault, err := parseFault(value, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	if err != nil {
		panic(err)
	}
	return fault
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
