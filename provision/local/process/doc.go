// Package process starts programs that outlive their starter, and finds them
// again by process id and start time, so that a reused id is never mistaken for
// the process it once named.
//
// It imports nothing of bijou. provision/local and multicall import it.
package process
