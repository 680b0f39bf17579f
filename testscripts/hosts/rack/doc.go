// Package rack tests an environment of many machines on its own hosts. Each host runs etcd, with TLS and a
// user. The provider ssh made the machines from the hosts, and two of them run provisioners. While units
// change their relations, the tests cut the power and the network of hosts and kill leaders. They compare
// the records of the hooks with docs/reference/hooks.md.
//
// BIJOU_TEST_LONG=1 runs the tests, as root.
package rack
