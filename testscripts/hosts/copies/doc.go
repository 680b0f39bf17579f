// Package copies proves that a unit's hooks run in one place at a time, whoever starts
// an agent besides: from a copy of the environment's folder, on the same host or another
// one, or with the number of a machine that is another host's; while the store is there
// and while it is away; and what happens when a machine is given to another host.
//
// It is tests only and nothing imports it. The unit's hooks take seconds and settings
// change all the time, so that there is always one to overlap with. Each line
// `copies: ...` says what was counted.
//
// BIJOU_TEST_BINARY=COMMIT runs the same with that commit's binary: of one from before
// machines had claims, to see that the tests can fail.
package copies
