// Package pages holds the scripts that follow the pages of docs and the README: first steps,
// inspection, logs, and recovery from stuck states.
//
// The test binary is every applet.
package pages
