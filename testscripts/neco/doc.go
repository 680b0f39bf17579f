// Package neco holds the scripts about boot servers that update themselves, with the servers around
// them: releases, alerts, a proxy, sabakan. Each is the test's own process.
//
// The test binary is every applet; nothing imports this package.
package neco
