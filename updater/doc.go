// Package updater is what all sides of an update of boot servers share: its keys in the store,
// how they are opened, read, followed and changed, and their backup. Packages leader and worker
// decide and act on them; operators' commands read and write them. It decides nothing, and
// imports neither side.
//
// Boot servers are brought to a new release in lock-step. The promises, which hold whatever is
// killed, cut off or late:
//
//   - no server runs a step before all servers of the request have come to it;
//   - a step is run by workers of the request's version only;
//   - of a rolling component, at most one server's member is down for an update;
//   - once a request is stopped, no worker that hears of it begins a step;
//   - each attempt at a request ends in exactly one report.
package updater
