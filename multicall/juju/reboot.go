package juju

import (
	"os"

	"bijou/multicall/home"
)

// noteReboot notes whether the environment comes back by itself after a reboot, and otherwise the command
// that brings it back.
func (o *operator) noteReboot(e home.Environment) {
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}

	switch service, starts := o.parts.Services.AtBoot(e); {
	case starts:
		o.note("systemd starts it again after a reboot: %s", service)
	case service != "":
		o.note("it does not start automatically after a reboot; for that: %sbijou install --systemd --env %s && %[1]ssystemctl enable --now %s",
			sudo, quoteShellWords([]string{e.Dir}), service)
	default:
		o.note("it does not start automatically after a reboot; start it then with: juju start -e %s", e.Name)
	}
}
