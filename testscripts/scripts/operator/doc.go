// Package operator holds the scripts about what an operator types and reads: the main
// road and the smaller commands, waiting, removals, secrets, backups.
//
// The test binary is every applet; nothing imports this package.
package operator
