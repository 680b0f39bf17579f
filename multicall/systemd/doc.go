// Package systemd writes the unit files of an environment, calls systemctl, and
// finds the service that a process belongs to.
//
// It is not for daemons, which notify systemd by multicall's serviceNotifier. It
// imports of bijou multicall/home only, and multicall alone imports it.
package systemd
