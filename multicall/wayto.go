package multicall

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/provision/nspawn"
	"bijou/provision/ssh"
	"bijou/state"
)

// wayTo is how an operator gets onto a machine, by what its provider is.
func wayTo(e home.Environment, env state.Environment, m state.Machine) (juju.Reach, error) {
	switch {
	case m.ID == "0", env.Provider == state.ProviderLocal:
		return here(e, m)
	case env.Provider == ssh.Name:
		return bySSH(e, env, m)
	case env.Provider == nspawn.Name:
		return intoContainer(e, m)
	case m.Addresses.Public == "":
		return juju.Reach{}, fmt.Errorf("cannot reach machine %s: the provider %q has not said where it is", m.ID, env.Provider)
	}
	return remote(ssh.Client{Destination: m.Addresses.Public}, "."), nil
}

// here is this host itself.
func here(e home.Environment, m state.Machine) (juju.Reach, error) {
	dir := e.MachineDir(m.ID)
	if _, err := os.Stat(dir); err != nil {
		return juju.Reach{}, fmt.Errorf("cannot reach machine %s: its folder is not on this host: %w", m.ID, err)
	}
	return juju.Reach{Dir: dir, Copy: []string{"cp"}, Run: func(line string, _ bool) *exec.Cmd {
		return exec.Command("sh", "-c", line)
	}}, nil
}

// bySSH is a host of the provider ssh.
func bySSH(e home.Environment, env state.Environment, m state.Machine) (juju.Reach, error) {
	p, err := ssh.New(providerWanted(e, env).Environment)
	if err != nil {
		return juju.Reach{}, err
	}
	c, err := p.Client(m.InstanceID)
	if err != nil {
		return juju.Reach{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}
	return remote(c, home.Environment{Dir: c.Dir}.MachineDir(m.ID)), nil
}

// remote is a host that the system's own ssh reaches.
func remote(c ssh.Client, dir string) juju.Reach {
	user, host, ok := strings.Cut(c.Destination, "@")
	if strings.Contains(host, ":") && ok {
		host = user + "@[" + host + "]" // or scp would take it for a file's
	} else {
		host = c.Destination
	}
	return juju.Reach{Dir: dir, Host: host, Copy: append([]string{"scp"}, c.Options...), Run: func(line string, terminal bool) *exec.Cmd {
		args := c.Options
		if terminal {
			args = append(args, "-t")
		}
		return exec.Command("ssh", append(args, "--", c.Destination, line)...)
	}}
}

// intoContainer is a container of this host, which only root enters.
func intoContainer(e home.Environment, m state.Machine) (juju.Reach, error) {
	if os.Geteuid() != 0 {
		return juju.Reach{}, console.Hint(fmt.Errorf("cannot reach machine %s: only root enters a container", m.ID), "call it by sudo, with BIJOU_HOME="+filepath.Dir(e.Dir))
	}
	pid, err := containerInit(m.InstanceID)
	if err != nil {
		return juju.Reach{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}
	none := "files of a container are reached by what runs in it only, which nobody else may steer"
	return juju.Reach{Dir: e.MachineDir(m.ID), NoCopy: none, Run: func(line string, _ bool) *exec.Cmd {
		c := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-a", "--", "sh", "-c", line)
		c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "SHELL=/bin/bash", "TERM=" + or(os.Getenv("TERM"), "dumb")}
		return c
	}}, nil
}

// containerInit is the process id of a container's first process: the child of the
// systemd-nspawn that runs it.
func containerInit(name string) (int, error) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, path := range commands {
		data, err := os.ReadFile(path)
		words := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
		if err != nil || filepath.Base(words[0]) != "systemd-nspawn" {
			continue
		}
		for _, w := range words {
			if w == "--machine="+name {
				return childOf(filepath.Base(filepath.Dir(path)))
			}
		}
	}
	return 0, fmt.Errorf("the container %q does not run", name)
}

// childOf is a process's first child.
func childOf(pid string) (int, error) {
	data, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	child, err := strconv.Atoi(first)
	if err != nil {
		return 0, errors.New("the container has no process")
	}
	return child, nil
}
