package agent

// DoFolder makes the folder that `juju do` may use for the sockets of its runs,
// owner-only and short, and returns it. RemoveSockets removes it.
func DoFolder(uuid string) (string, error) { return socketDir(uuid, "do") }
