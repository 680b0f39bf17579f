package tools

import "bijou/hookenv"

func prepareOpenPort(f *hookenv.FlagSet) hookenv.Runner { return (&portChanger{open: true}).prepare(f) }
