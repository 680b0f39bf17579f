// Package histories checks with porcupine, a checker from outside this project, whether the state library is
// linearizable. Several processes view, update and hold leased keys of one store while they and the members
// of etcd are killed. There must be one order of all operations that explains their results.
//
// Each run is random, so the package is a lane of .ci/long. Planted faults prove that the checker finds
// violations.
package histories
