// Package fleet is hosts of your own on one machine, for tests: each a system
// container with its own systemd, disk, network interface and address, booted
// in about a second. They can be stopped, lose power, and lose their network.
//
// All of a fleet lives in namespaces of its own, whose first process reads a pipe
// from the test: when the test ends, however it does, the kernel ends every
// process, mount and interface of it, and the folders are removed. The machine
// itself stays as it was.
//
// It needs root, the packages systemd-container and iproute2, and a tree of
// files that testscripts/kit/fleet/base makes. It knows nothing of bijou; tests
// import it, and nothing else does. Above some 25 hosts the machine's
// fs.inotify.max_user_instances must be raised.
package fleet
