// Package laws holds the code against the house's laws. In the folders below
// it bijou's behaviour is promised: by scripts (*.txtar) that use the applets as
// people and charms do, and by the suites that need a world of their own; HACKING.md
// says which promise is held by which.
//
// Nothing imports this package.
package laws
