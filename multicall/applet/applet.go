// Package applet is what every applet begins with: its call, this process's executable and
// log. It does nothing of an applet's own and imports no role. multicall and its rooms
// import it.
package applet

import "bijou/multicall/console"

// Version is bijou's own version, as `bijou version` prints it.
const Version = "0.1.0"

// Applet is one name that this binary answers to.
type Applet struct {
	Name    string
	Summary string // one line for `bijou help`
	Run     func(Call) int
}

// Call is one call of an applet.
type Call struct {
	Name    string   // the applet's
	Args    []string // without the name
	Streams console.Streams
	Applets []string           // the names of all applets, for whoever links them
	Fault   func(point string) // called at named points, for tests; may be nil
}
