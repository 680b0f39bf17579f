package tools

import "bijou/hookenv"

func openPort() hookenv.Tool {
	return hookenv.Tool{Name: "open-port", Prepare: func(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{open: true}).prepare(f) }}
}
