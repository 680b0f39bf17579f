// Package released runs hooks by the binary as it is released, whose tools do their work before Go's
// runtime, and kills tools and agents in the middle. Other suites run the binary of `go test`,
// in which tools go the ordinary road, unless they take testscripts/hosts/versions.
package released
