// Package status reads what `juju status` shows: docs/reference/status.md.
//
// It changes nothing, and shows nothing itself.
package status
