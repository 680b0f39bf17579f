package juju

import (
	"os"

	"bijou/multicall/home"
)

// noteReboot prints whether systemd starts the environment again after a reboot. If it does not, noteReboot
// prints the commands that change this or start the environment.
func (o *operator) noteReboot(e home.Environment) {
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}

	switch service, starts := o.parts.Services.AtBoot(e); {
	case starts:
		o.note("systemd starts the model again after a reboot: %s", service)
	case service != "":
		o.note("the model does not start automatically after a reboot; to change that: %sbijou install --systemd --env %s && %[1]ssystemctl enable --now %s",
			sudo, quoteShellWords([]string{e.Dir}), service)
	default:
		o.note("the model does not start automatically after a reboot; to start it: juju start -e %s", e.Name)
	}
}
