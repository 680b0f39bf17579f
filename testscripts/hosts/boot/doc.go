// Package boot tests the updater on real boot servers: three hosts with systemd, whose etcd is both the
// store and a component of the update. They go from one release to the next, unattended, and through
// every fault that can happen on the way.
//
// The tests take some minutes, need what testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG
// is set. This test binary stands in for CKE, Vault and sabakan. Serf and Podman are Debian's.
package boot
