// Package systemd is what bijou knows of the service manager of that name: the
// unit files of an environment, and which service a process belongs to.
//
// What a daemon tells it is said elsewhere (multicall's manager). It imports of
// bijou multicall/home only, and multicall alone imports it.
package systemd
