// Package worker is the side of an update that each boot server's neco-worker has: it installs
// the request's version, and does its steps, each when all servers have come to it. NextTask
// decides what it does next, NextRolling and NextOnce what it does within a step that servers
// must coordinate. They are pure functions over snapshots. Run is the loop around them.
//
// It does not know how services are run or packages installed: that is its Server's. Only
// package multicall may import it.
package worker
