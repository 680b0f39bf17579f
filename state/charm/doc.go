// Package charm reads charms: their metadata, configuration schema, archives,
// names and URLs. A charm is a directory or a zip archive of one.
//
// It knows files and bytes, never the store, a unit or an environment, and imports nothing
// of bijou. The operator's commands, state and the agents import it.
//
// Charms come from outside, so everything here is bounded (limits.go), and an error names
// the file, its size and the limit.
package charm
