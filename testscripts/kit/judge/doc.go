// Package judge checks the records of recorder charms against the promises about hooks. It checks their
// order, what each is told and can see, and that nothing is skipped, lost, or passed over after a
// failure.
//
// It runs nothing and waits for nothing. The suites that kill agents and take stores away do that, and
// then call it.
package judge
