// Package leader is the side of an update that one neco-updater has, the one that leads: it
// looks for releases, makes requests, opens gates, watches over the workers, and reports how
// requests end. Next decides what it does next; Recover, Retry, Halt and Unregister decide on
// operators' commands. They are pure functions over a Snapshot. Around them stand Load, which
// reads one, and Run, which campaigns, decides and commits.
//
// It knows of workers what they have written, and nothing of services and packages. Packages
// multicall and multicall/neco may import it.
package leader
