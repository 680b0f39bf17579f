// Package containers tests the provider nspawn in the way a new user would use it. It bootstraps an
// environment and deploys a blog and its database from the charms of docs/examples, each on its own
// machine. It relates, uses and kills them, and removes everything again. Afterwards this host must be in
// the same state as before.
//
// The tests take two minutes, need what testscripts/kit/fleet needs and the packages that
// testscripts/hosts/containers/packages fetches, and run only if BIJOU_TEST_LONG is set.
package containers
