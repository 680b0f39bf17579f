package tools

import "bijou/hookenv"

func prepareClosePort(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{}).prepare(f) }
