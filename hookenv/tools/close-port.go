package tools

import "bijou/hookenv"

func closePort() hookenv.Tool {
	return hookenv.Tool{Name: "close-port", Prepare: func(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{}).prepare(f) }}
}
