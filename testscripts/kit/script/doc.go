// Package script runs the scripts (*.txtar) beside a test over each store that processes can share.
// Scripts use the applets as people and charms use them.
//
// It promises nothing about bijou: the packages of scripts do that, each with a TestMain and a
// TestScripts of one line.
package script
