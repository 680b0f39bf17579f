// Package confined holds the scripts about agents that reach their state through a gateway, which allows each
// machine only the operations to which its units have a right. It also runs scripts of other suites over such
// a gateway.
//
// The test binary is every applet.
package confined
