// Package fleet provides test hosts on one machine. Each is a system container with its own systemd,
// disk, network interface and address, and boots in about a second. Hosts can be stopped, lose power,
// and lose their network.
//
// A fleet has its own namespaces, whose first process reads a pipe from the test. When the test
// ends in any way, the kernel ends every process, mount and interface of the fleet, and the directories
// are removed. The machine itself stays as it was.
//
// It needs root, the packages systemd-container and iproute2, and a tree of files from
// testscripts/kit/fleet/base. For more than about 25 hosts the machine's fs.inotify.max_user_instances
// must be raised.
package fleet
