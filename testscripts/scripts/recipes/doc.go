// Package recipes holds the scripts about the charms of docs/examples that authors are
// to learn from: what docs/how-to/recipes.md says of each, and that it bears being killed.
//
// The test binary is every applet; nothing imports this package.
package recipes
