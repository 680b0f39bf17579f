// Package operator holds the scripts about what an operator types and reads: the main
// road and the smaller commands, what is refused, backups, and what a hostile name gets.
//
// The test binary is every applet; nothing imports this package.
package operator
