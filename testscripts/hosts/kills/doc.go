// Package kills tests that units survive the death of their agents. It kills the real binary's
// processes with SIGKILL at every durable step of an agent and at random moments, while units relate,
// change, upgrade and leave. Package judge then checks their records.
//
// Without BIJOU_TEST_LONG it runs each point once, always in the same order, and nothing random.
package kills
