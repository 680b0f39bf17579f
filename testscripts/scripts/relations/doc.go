// Package relations holds the scripts about units that meet: their relations and settings,
// subordinates, and reaching any relation from any hook.
//
// The test binary is every applet; nothing imports this package.
package relations
