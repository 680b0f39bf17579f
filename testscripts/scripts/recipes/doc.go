// Package recipes holds the scripts about the charms of docs/examples, from which authors can learn. They
// check the claims of docs/how-to/recipes.md about each charm, and check that each survives kills.
//
// The test binary is every applet.
package recipes
