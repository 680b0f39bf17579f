package multicall

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/neco"
	"bijou/multicall/necodaemon"
	"bijou/multicall/tour"
)

func runNeco(c applet.Call) int {
	applet.SetLogOutput(c.Streams.Err)
	manifest, version, err := necodaemon.OwnManifest()
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return neco.Main(ctx, c.Streams, neco.Parts{Version: version, Manifest: manifest, Demo: tour.Demo}, c.Args)
}
