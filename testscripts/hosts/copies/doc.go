// Package copies tests that a unit's hooks run in one place at a time, even if somebody starts a second
// agent. That agent can run from a copy of the environment's directory, on the same host or a different one.
// It can also run with the number of a machine that is on a different host. The package tests this while the
// store is available and while it is away. It also tests the move of a machine to a different host.
//
// The unit's hooks take seconds and its settings change all the time, so that at almost any time a hook is
// running with which another could overlap. Each line `copies: ...` shows the counts.
//
// BIJOU_TEST_BINARY=COMMIT runs the same tests with that commit's binary. With a binary that has no claims of
// machines yet, the tests must fail. Agents that reach the state through a gateway always run this test
// binary.
package copies
