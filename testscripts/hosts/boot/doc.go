// Package boot tests the updater on real boot servers: three hosts with systemd, whose etcd is both the store
// and a component of the update. They update from one release to the next, unattended, while all kinds of
// faults happen.
//
// The tests take some minutes, need what testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG is set.
// This test binary acts as CKE, Vault and sabakan. Serf and Podman come from Debian.
package boot
