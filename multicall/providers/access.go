package providers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/provision/nspawn"
	"bijou/provision/ssh"
	"bijou/state"
)

// Access returns how to get onto a machine that has an instance, or is machine 0.
func (All) Access(e home.Environment, env state.Environment, m state.Machine) (juju.Access, error) {
	switch {
	case m.ID == "0", env.Provider == state.ProviderLocal:
		return accessLocal(e, m)
	case env.Provider == ssh.Name:
		return accessSSHHost(e, env, m)
	case env.Provider == nspawn.Name:
		return accessContainer(e, m)
	case m.Addresses.Public == "":
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: the provider %q has not said where it is", m.ID, env.Provider)
	}
	return sshAccess(ssh.Client{Destination: m.Addresses.Public}, "."), nil
}

func accessLocal(e home.Environment, m state.Machine) (juju.Access, error) {
	dir := e.MachineDir(m.ID)
	if _, err := os.Stat(dir); err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: its folder is not on this host: %w", m.ID, err)
	}
	return juju.Access{Dir: dir, Copy: []string{"cp"}, Run: func(line string, _ bool) *exec.Cmd {
		return exec.Command("sh", "-c", line)
	}}, nil
}

func accessSSHHost(e home.Environment, env state.Environment, m state.Machine) (juju.Access, error) {
	p, err := ssh.New(providerWanted(e, env).Environment)
	if err != nil {
		return juju.Access{}, err
	}
	c, err := p.Client(m.InstanceID)
	if err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}
	return sshAccess(c, home.Environment{Dir: c.Dir}.MachineDir(m.ID)), nil
}

func sshAccess(c ssh.Client, dir string) juju.Access {
	user, host, ok := strings.Cut(c.Destination, "@")
	if strings.Contains(host, ":") && ok {
		host = user + "@[" + host + "]" // or scp would take it for a file's
	} else {
		host = c.Destination
	}
	return juju.Access{Dir: dir, Host: host, Copy: append([]string{"scp"}, c.Options...), Run: func(line string, terminal bool) *exec.Cmd {
		args := c.Options
		if terminal {
			args = append(args, "-t")
		}
		return exec.Command("ssh", append(args, "--", c.Destination, line)...)
	}}
}

// accessContainer refuses all but root, who alone can enter.
func accessContainer(e home.Environment, m state.Machine) (juju.Access, error) {
	if os.Geteuid() != 0 {
		return juju.Access{}, console.Hint(fmt.Errorf("cannot reach machine %s: only root enters a container", m.ID), "call it by sudo, with BIJOU_HOME="+filepath.Dir(e.Dir))
	}
	pid, err := containerInitPID(m.InstanceID)
	if err != nil {
		return juju.Access{}, fmt.Errorf("cannot reach machine %s: %w", m.ID, err)
	}
	none := "files of a container are reached by what runs in it only, which nobody else may steer"
	return juju.Access{Dir: e.MachineDir(m.ID), NoCopy: none, Run: func(line string, _ bool) *exec.Cmd {
		c := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-a", "--", "sh", "-c", line)
		c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "SHELL=/bin/bash", "TERM=" + cmp.Or(os.Getenv("TERM"), "dumb")}
		return c
	}}, nil
}

// containerInitPID returns the container's first process: the child of the systemd-nspawn
// that runs it.
func containerInitPID(name string) (int, error) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, path := range commands {
		data, err := os.ReadFile(path)
		words := strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
		if err != nil || filepath.Base(words[0]) != "systemd-nspawn" {
			continue
		}
		if slices.Contains(words, "--machine="+name) {
			return firstChild(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("the container %q does not run", name)
}

func firstChild(pid string) (int, error) {
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
