package host

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/godbus/dbus/v5"
)

func TestCutOff(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errNoSystemd, false},
		{context.Canceled, false},
		{errors.New("it has failed"), false},
		{dbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}, false},
		{dbus.Error{Name: "org.freedesktop.DBus.Error.NoReply"}, true},
		{fmt.Errorf("cannot look: %w", dbus.Error{Name: "org.freedesktop.DBus.Error.Disconnected"}), true},
		{dbus.ErrClosed, true},
	} {
		if got := isDisconnected(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}
