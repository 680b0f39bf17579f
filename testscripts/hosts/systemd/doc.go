// Package systemd proves on a real host of systemd's what `bijou install --systemd`
// promises: an environment that is restarted, stopped, killed, hung, replaced by a
// newer binary, or cut from power goes on, and loses nothing.
//
// It is tests only and nothing imports it. They take a minute, need what
// testscripts/kit/fleet needs, and run only if BIJOU_TEST_LONG is set.
package systemd
