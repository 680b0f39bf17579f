package multicall

import (
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/neco"
	"bijou/multicall/necodaemon"
	"bijou/multicall/tour"
)

func runNeco(c applet.Call) int {
	manifest, version, err := necodaemon.OwnManifest()
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}
	ctx, stop := applet.BeginCommand(c)
	defer stop()
	return neco.Main(ctx, c.Streams, neco.Parts{Version: version, Manifest: manifest, Server: necodaemon.Server{}, Demo: tour.Demo}, c.Args)
}
