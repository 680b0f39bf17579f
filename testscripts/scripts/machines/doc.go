// Package machines holds the scripts about machines, their providers, and the place of an environment's
// state. This includes the providers' processes, constraints, series, and migrations between stores.
//
// The test binary is every applet.
package machines
