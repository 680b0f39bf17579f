// Package relations holds the scripts about related units: relations and settings, subordinates, and
// access to any relation from any hook.
//
// The test binary is every applet.
package relations
