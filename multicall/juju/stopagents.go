package juju

import (
	"errors"

	"bijou/multicall/home"
)

// maxStopPasses is how often agents are looked for: one that was about to start others
// when it was told to end may have done so.
const maxStopPasses = 5

// stopAgents stops the agents of all machines on this host, and those that are started meanwhile. It gives up
// after maxStopPasses passes that each found some.
func (o *operator) stopAgents(e home.Environment) (stopped int, err error) {
	for range maxStopPasses {
		n, err := o.stopOnce(e)
		stopped += n
		if err != nil || n == 0 {
			return stopped, err
		}
	}

	return stopped, errors.New("agents came back each time: a provisioner on a different host may start them")
}

// stopOnce stops each agent that runs at the moment, and its systemd service so that systemd does not start
// it again.
func (o *operator) stopOnce(e home.Environment) (stopped int, err error) {
	dirs, err := e.MachineDirs()
	if err != nil {
		return 0, err
	}

	for _, dir := range dirs {
		pid, err := o.parts.Processes.Process(dir)
		if err != nil {
			return stopped, err
		}
		if pid == 0 {
			continue
		}

		if service := o.parts.Services.Of(pid); service != "" {
			err = o.parts.Services.Stop(service)
		}
		if err != nil {
			return stopped, err
		}
		if err := o.parts.Processes.Halt(o.ctx, dir, haltTimeout); err != nil {
			return stopped, err
		}
		stopped++
	}

	return stopped, nil
}
