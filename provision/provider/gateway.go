package provider

import "path/filepath"

// GatewayFolder is where an environment's folder has the sockets by which machines reach the state
// without having it: one a machine, each in a folder of its own, which that machine alone is given.
const GatewayFolder = "gateway"

// ConfinedSetting is the provider's setting that has machines of this host reach the state by such a
// socket only.
const ConfinedSetting = "confined"

// IsConfined reports whether a provider's settings say so.
func IsConfined(config map[string]string) bool { return config[ConfinedSetting] == "true" }

// GatewayDir returns the directory of a machine's socket.
func GatewayDir(environment, machine string) string {
	return filepath.Join(environment, GatewayFolder, machine)
}

// GatewaySocket returns the path of a machine's socket, which is the same on this host and in the machine.
func GatewaySocket(environment, machine string) string {
	return filepath.Join(GatewayDir(environment, machine), "socket")
}

// GatewayURL returns the URL of the state at a machine's socket.
func GatewayURL(environment, machine string) string {
	return "bijou+unix://" + GatewaySocket(environment, machine)
}
