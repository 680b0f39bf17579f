// Package pages holds the scripts that do what the pages of docs and the README say: a newcomer's
// way, looking inside, logs, and what to do when something is stuck.
//
// The test binary is every applet; nothing imports this package.
package pages
