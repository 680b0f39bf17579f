// Package operator holds the scripts about what an operator types and reads: the main
// road and the smaller commands, upgrades, what failed, what is refused, and what a
// hostile charm or name gets.
//
// The test binary is every applet; nothing imports this package.
package operator
