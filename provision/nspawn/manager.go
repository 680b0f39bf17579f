package nspawn

import (
	"context"
	"os"
)

// containerManager holds a container's processes together, so that they are found and ended whoever
// has started them, and knows of nothing but their instance's id.
type containerManager interface {
	// start starts the command, which outlives this process. It returns once the
	// manager knows of it, with the limits that cannot be enforced here.
	start(ctx context.Context, id string, c command) (unlimited []string, err error)
	// isRunning reports whether any process of it lives.
	isRunning(id string) (bool, error)
	// kill kills all of its processes, and blocks until there are none.
	kill(ctx context.Context, id string) error
	// close frees what the manager has beside its containers.
	close() error
}

// command describes a container to start.
type command struct {
	args   []string // of boot.sh, behind the groups
	log    string   // where it prints
	lock   *os.File // kept until the container has taken its place
	limits limits
}
