// Package leader is the side of an update that one neco-updater has, the one that leads: it
// looks for releases, makes requests, opens gates, watches over the workers, and reports how
// requests end. Package updater/decide says what it does next; Run campaigns, reads, commits
// that and sends alerts.
//
// It knows nothing of services and packages. Only multicall/necodaemon imports it.
package leader
