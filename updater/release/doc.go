// Package release knows what a release is: versions and their one order, tags,
// which release an environment takes, which of its files a boot server needs,
// whether they are what their maker published, and the manifest, which says in
// which steps the release is brought to the boot servers. A Source asks GitHub's
// API what is published, and gets files; all else is pure.
//
// It runs and installs nothing. The updater's packages may import it; it imports
// updater/record and state/durable only.
package release
