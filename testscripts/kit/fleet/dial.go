package fleet

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Dial connects to an address (an IP address and a port) in the fleet's network. Nothing else of this
// process is in that network.
func (f *Fleet) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = f.inNetwork(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// inNetwork calls do on a thread in the fleet's network. A thread that cannot return to its old network
// ends with its goroutine.
func (f *Fleet) inNetwork(do func() error) error {
	failure := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			failure <- err
			return
		}
		defer home.Close()
		away, err := os.Open("/proc/" + strconv.Itoa(f.world) + "/ns/net")
		if err != nil {
			failure <- err
			return
		}
		defer away.Close()
		if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
			failure <- fmt.Errorf("cannot enter the fleet's network: %w", err)
			return
		}
		err = do()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		failure <- err
	}()
	return <-failure
}
