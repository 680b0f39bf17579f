package applet

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

// commandGCPercent lets most commands end before their first collection.
const commandGCPercent = 400

// BeginCommand prepares a command that an operator waits for. Its context is done once the
// process is told to end.
func BeginCommand(c Call) (ctx context.Context, stop func()) {
	SetLogOutput(c.Streams.Err)
	collectLater()
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// collectLater puts the first collection off; from then on memory is kept as tight as
// elsewhere.
func collectLater() {
	before := debug.SetGCPercent(commandGCPercent)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, before)
}
