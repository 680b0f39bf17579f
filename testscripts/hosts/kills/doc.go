// Package kills proves that units survive the death of their agents: the
// product's own binary as child processes, killed with SIGKILL at every durable
// step of an agent and at random moments, over units that relate, change, upgrade
// and leave. Package judge says what of their records is wrong.
//
// It is tests only and nothing imports it. Without BIJOU_TEST_LONG it has each point
// once, always in the same order, and nothing that is random.
package kills
