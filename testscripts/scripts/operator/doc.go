// Package operator holds the scripts about an operator's commands and their output: the main commands and the
// smaller ones, waiting, removals, secrets, and backups.
//
// The test binary is every applet.
package operator
