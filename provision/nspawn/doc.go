// Package nspawn is the provider for which a machine is a system container of
// this host: its own systemd, processes and addresses, and an overlay over one
// tree of files that all of them share. It runs as root.
//
// Everything of an environment is in its folder, below nspawn/: a folder a
// machine, and the record of its network. Nothing is kept in memory, and no
// container needs the process that started it: it is found by its control groups,
// or as systemd's unit where systemd manages the host.
//
// It is no provisioner, and knows nothing of what is in the state. It imports
// provision/provider and state/durable only; multicall chooses it.
package nspawn
