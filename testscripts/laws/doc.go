// Package laws checks the code against the rules of this repository. The directories beside it test
// bijou's behaviour: with scripts (*.txtar) that use the applets as people and charms do, and with
// suites that need their own surroundings. The page docs/dev/promises.md lists which test checks which
// promise.
package laws
