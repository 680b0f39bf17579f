package multicall

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bijou/multicall/console"
	"bijou/multicall/neco"
	"bijou/multicall/tour"
)

func runNeco(c call) int {
	setLogOutput(c.streams.Err)
	manifest, version, err := ownManifest()
	if err != nil {
		return console.Report(c.streams.Err, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return neco.Main(ctx, c.streams, neco.Parts{Version: version, Manifest: manifest, Demo: tour.Demo}, c.args)
}
