// Package rack tests an environment of many machines on its own hosts: etcd on each, with TLS and a
// user, machines that the provider ssh made from the hosts, and provisioners on two of them. It takes
// power, links and leaders away while units relate, and checks what their hooks saw against
// docs/reference/hooks.md.
//
// BIJOU_TEST_LONG=1 runs the tests, as root.
package rack
