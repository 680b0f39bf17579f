// Package judge checks the records of recorder charms against the promises about hooks: the order of the hooks,
// and the values that each hook gets and can read. No hook may be skipped, and no value lost, even after a
// failure.
//
// It only reads records. The suites that kill agents and stop stores call it at their end.
package judge
