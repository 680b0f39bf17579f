package juju

import (
	"errors"

	"bijou/multicall/console"
	"bijou/multicall/home"
)

// maxStopPasses is how many times stopAgents looks for agents. An agent can start others just before it ends.
const maxStopPasses = 5

// stopAgents stops the agents of all machines on this host, and agents that are started in the meantime. It
// returns the number of stopped agents. It returns an error if each of maxStopPasses passes has found agents.
func (o *operator) stopAgents(e home.Environment) (stopped int, err error) {
	for range maxStopPasses {
		n, err := o.stopOnce(e)
		stopped += n
		if err != nil {
			return stopped, err
		}
		if n == 0 {
			return stopped, nil
		}
	}

	return stopped, console.Hint(errors.New("cannot stop all agents: something starts them again"),
		"if a provisioner on a different host starts them, stop it there: juju stop")
}

// stopOnce stops each agent that is running now, and returns their number. It also stops the agent's systemd
// service, so that systemd does not start the agent again. If an agent cannot be stopped, it returns the number
// of those before it.
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
			if err := o.parts.Services.Stop(service); err != nil {
				return stopped, err
			}
		}
		if err := o.parts.Processes.Halt(o.ctx, dir, haltTimeout); err != nil {
			return stopped, err
		}
		stopped++
	}

	return stopped, nil
}
