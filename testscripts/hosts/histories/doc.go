// Package histories asks a checker that this project did not write, porcupine, whether the state
// library is linearizable: several processes view, update and hold leased keys of one store while
// they, and the members of etcd, are killed, and what each of them was told must fit one order of
// all operations.
//
// Each run is random, so it is a lane of .ci/long. What a checker must find is planted, too.
package histories
