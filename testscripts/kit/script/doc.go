// Package script runs the scripts (*.txtar) beside a test, in which the applets are
// used as people and charms use them, over each store that processes can share.
//
// It promises nothing about bijou: the packages of scripts do, each with a TestMain
// and a TestScripts of one line. Tests below testscripts import it.
package script
