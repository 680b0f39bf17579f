package tools

import "bijou/hookenv"

func openPort() hookenv.Tool {
	return hookenv.Tool{
		Name:    "open-port",
		Summary: "open a port or a range of ports",
		Usage:   "[--endpoints NAMES] N[/PROTOCOL]|A-B[/PROTOCOL]|icmp [UNIT_NAME]",
		Notes:   "PROTOCOL is tcp, the default, or udp. It takes effect when the hook has succeeded.",
		Examples: []string{
			"open-port 80",
			"open-port 10000-20000/udp",
			"open-port icmp",
		},
		Prepare: func(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{open: true}).prepare(f) },
	}
}
