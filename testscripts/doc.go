// Package testscripts holds the code against the house's laws. In the folders below
// it bijou's behaviour is promised: by scripts (*.txtar) that use the applets as
// people and charms do, in agent, machines, neco, operator, tools and units, and by
// the suites that need a world of their own.
//
// Nothing imports this package.
package testscripts
