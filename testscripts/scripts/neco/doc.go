// Package neco holds the scripts about what operators ask of neco and set: commands, configuration,
// backups, releases, the list of boot servers.
//
// The test binary is every applet; nothing imports this package.
package neco
