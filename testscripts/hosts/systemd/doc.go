// Package systemd tests the promises of `bijou install --systemd` on a real host with systemd. An
// environment must continue without any loss after a restart, a stop, a kill, a hang, a switch to a newer
// binary, and a power cut.
//
// The tests take a minute, need what testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG is
// set.
package systemd
