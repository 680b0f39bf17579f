package agent

// ProviderFolder is the folder for the sockets of a provider's process, made if it
// is missing: owner-only, short enough for a socket's path, and removed with the
// environment's sockets.
func ProviderFolder(uuid string) (string, error) { return socketDir(uuid, "provider") }
