// Package script runs the scripts (*.txtar) beside a test over each store that processes can share.
// Scripts use the applets as people and charms use them.
//
// The scripts themselves are in other packages, each with a TestMain and a TestScripts.
package script
