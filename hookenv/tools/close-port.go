package tools

import "bijou/hookenv"

func closePort() hookenv.Tool {
	return hookenv.Tool{
		Name:     "close-port",
		Summary:  "close a port or a range of ports",
		Usage:    "[--endpoints NAMES] N[/PROTOCOL]|A-B[/PROTOCOL]|icmp [UNIT_NAME]",
		Notes:    "A range is closed as it was opened. It takes effect when the hook has succeeded.",
		Examples: []string{"close-port 80", "close-port 10000-20000/udp"},
		Prepare:  func(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{}).prepare(f) },
	}
}
