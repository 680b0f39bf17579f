// Package ssh is the provider for which a machine is a host that is there
// already, and reached by ssh: from a pool, or named by the operator. The agent
// is copied there, and runs as a service.
//
// It never makes hosts, and never trusts one whose key nobody has vouched for.
// A host is one machine's at a time: a mark on the host itself says whose, so
// that no two environments, and no two provisioners, share one by accident. It
// imports provision/provider, state/constraints and state/durable only; multicall
// chooses it.
package ssh
