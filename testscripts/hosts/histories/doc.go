// Package histories checks with porcupine, a checker from outside this project, whether the state
// library is linearizable. Several processes view, update and hold leased keys of one store while they
// and the members of etcd are killed. Their results must fit one order of all operations.
//
// Each run is random, so the package is a lane of .ci/long. Planted faults show that the checker finds
// what it must.
package histories
