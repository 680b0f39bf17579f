// Package copies tests that a unit's hooks run in one place at a time, even if somebody starts a second
// agent. That agent can run from a copy of the environment's directory, on the same host or a different
// one. It can also have the number of a machine that is on a different host. The package tests that
// with and without the store, and tests that a machine can be given to a different host.
//
// The unit's hooks take seconds and its settings change all the time, so that there is always one to
// overlap with. Each line `copies: ...` shows what was counted.
//
// BIJOU_TEST_BINARY=COMMIT runs the same tests with that commit's binary. With one from before machines
// had claims, the tests must fail.
package copies
