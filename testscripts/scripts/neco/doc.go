// Package neco holds the scripts about neco's commands and settings: configuration, backups, releases,
// and the list of boot servers.
//
// The test binary is every applet.
package neco
