// Package containers shows the provider nspawn as somebody new to it would use it: an
// environment is bootstrapped, a blog and its database are deployed from the charms
// of docs/examples, each on a machine of its own, related, visited, killed, and taken
// down again, and this machine is left as it was.
//
// It is tests only and nothing imports it. They take two minutes, need what
// testscripts/kit/fleet needs and the packages that testscripts/hosts/containers/packages
// fetches, and run only if BIJOU_TEST_LONG is set.
package containers
