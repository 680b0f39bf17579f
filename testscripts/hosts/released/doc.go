// Package released runs hooks with the released binary, whose tools do their work before Go's runtime
// starts. It kills tools and agents in the middle. Other suites run the binary of `go test`, in which
// tools take the ordinary path, unless they use testscripts/hosts/versions.
package released
