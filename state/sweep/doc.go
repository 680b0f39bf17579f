// Package sweep removes from an environment what nothing refers to any more, and finishes
// what was left half-way.
package sweep
