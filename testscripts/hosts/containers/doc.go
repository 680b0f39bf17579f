// Package containers tests the provider nspawn in the way a new user would use it. It bootstraps an
// environment and deploys a blog and its database from the charms of docs/examples, each on its own
// machine. It relates, visits and kills them, and takes everything down again. This machine must then
// be as it was.
//
// The tests take two minutes, need what testscripts/kit/fleet needs and the packages that
// testscripts/hosts/containers/packages fetches, and run only if BIJOU_TEST_LONG is set.
package containers
