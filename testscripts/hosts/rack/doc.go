// Package rack tests an environment of many machines on its own hosts. There is etcd on each host, with
// TLS and a user. The provider ssh made the machines from the hosts, and two of them run provisioners.
// The tests take power, links and leaders away while units relate, and check what their hooks saw
// against docs/reference/hooks.md.
//
// BIJOU_TEST_LONG=1 runs the tests, as root.
package rack
