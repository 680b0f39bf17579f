// Package recipes holds the scripts about the charms of docs/examples, from which authors can learn.
// They check what docs/how-to/recipes.md says of each, and that each survives kills.
//
// The test binary is every applet.
package recipes
