// Package boot proves the updater on real boot servers: three hosts with systemd,
// whose etcd is the store and a component of the update at once, go from one
// release to the next, unattended; and through everything that may break on the way.
//
// It is tests only and nothing imports it. They take some minutes, need what
// testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG is set. Where a data
// centre runs CKE, Vault and sabakan, stand-ins run: this test binary. Serf and Podman are
// Debian's.
package boot
