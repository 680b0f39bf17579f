// Package rack is hosts of their own with everything that an environment of many
// machines has: etcd on each, with TLS and a user, machines that the provider ssh
// has made of them, provisioners on two. It takes power, links and leaders away
// from them while units relate, and holds what their hooks saw against docs/reference/hooks.md.
//
// It is tests only; BIJOU_TEST_LONG=1 runs them, as root.
package rack
