// Package systemd tests the promises of `bijou install --systemd` on a real host with systemd. An
// environment that is restarted, stopped, killed, hung, replaced by a newer binary, or cut from power
// must go on and lose nothing.
//
// The tests take a minute, need what testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG is
// set.
package systemd
