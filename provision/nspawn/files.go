package nspawn

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"bijou/state/osutil"
)

//go:embed *.service
var serviceFiles embed.FS

//go:embed boot.sh
var bootScript string

// unitFolder is where an operator's unit files are.
const unitFolder = "etc/systemd/system"

// prepareFiles writes the machine's own files over the tree, before its container starts. It leaves alone
// files that a charm can have changed since the first start.
func (l launch) prepareFiles() error {
	if err := osutil.MkdirAll(l.dir(), 0o700); err != nil {
		return err
	}

	jujud := "var/lib/juju/tools/machine-" + l.spec.Machine
	for _, dir := range []string{"up", "work", "root", "machines/" + l.spec.Machine, "up/" + unitFolder + "/multi-user.target.wants", "up/" + jujud, "up/usr/bin"} {
		if err := l.makeFolder(dir); err != nil {
			return err
		}
	}

	// Charm libraries find out Juju's version by jujud. Programs that charms run outside of hooks call
	// juju-exec and juju-run.
	for _, path := range []string{jujud + "/jujud", "usr/bin/juju-exec", "usr/bin/juju-run"} {
		if err := l.writeCall(path); err != nil {
			return err
		}
	}

	// The machine's own directory is mounted over this one.
	if err := osutil.MkdirAll(filepath.Join(l.provider.env.Dir, "machines"), 0o755); err != nil {
		return err
	}
	if err := osutil.Symlink(l.tree, filepath.Join(l.dir(), "base")); err != nil {
		return err
	}

	name := l.hostname()
	for _, f := range []struct{ path, text string }{
		{"etc/hostname", name + "\n"},
		{"etc/hosts", fmt.Sprintf("127.0.0.1 localhost\n%s %s\n::1 localhost ip6-localhost ip6-loopback\n", l.record.Address, name)},
		{"etc/machine-id", machineID(l.spec.Token) + "\n"},
	} {
		if err := l.writeOnce(f.path, f.text); err != nil {
			return err
		}
	}

	if l.provider.aptRepository() != "" {
		if err := l.writeOnce("etc/apt/sources.list", repositorySource); err != nil {
			return err
		}
	}

	return l.writeUnits()
}

// writeCall makes a program that calls the applet of its name, of whichever tools there are by then: those
// of the first start go with an upgrade.
func (l launch) writeCall(path string) error {
	script := fmt.Sprintf("#!/bin/sh\nfor j in %q/tools/*/%s; do exec \"$j\" \"$@\"; done\n",
		l.provider.env.Dir, filepath.Base(path))
	return osutil.WriteFile(filepath.Join(l.dir(), "up", path), []byte(script), 0o755, osutil.ExactMode)
}

// makeFolder makes a directory that everybody in the container may enter, for any umask of this process.
func (l launch) makeFolder(path string) error {
	at := l.dir()
	for _, name := range strings.Split(path, "/") {
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}

		if err := os.Chmod(at, 0o755); err != nil {
			return err
		}
		if err := osutil.SyncDir(filepath.Dir(at)); err != nil {
			return err
		}
	}

	return nil
}

func (l launch) hostname() string { return l.provider.hostPrefix() + l.spec.Machine }

// hostPrefix returns the part of the machines' host names that comes from the environment's name.
func (p *Provider) hostPrefix() string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(p.env.Name))

	return strings.TrimLeft(plain[:min(len(plain), 40)]+"-", "-")
}

// machineID returns the id of machine-id(5) for a token. The same token always gives the same id.
func machineID(token string) string { return osutil.Digest([]byte("machine " + token))[:32] }

// writeOnce writes a file, unless the path was written or removed already.
func (l launch) writeOnce(path, text string) error {
	file := filepath.Join(l.dir(), "up", path)
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.makeFolder("up/" + filepath.Dir(path)); err != nil {
		return err
	}

	return osutil.WriteFile(file, []byte(text), 0o644, osutil.ExactMode)
}

// writeUnits writes the unit files of the container's network and agent, and masks units that do no good in
// a container.
func (l launch) writeUnits() error {
	all, err := template.New("").Funcs(template.FuncMap{"word": quoteWord, "path": escapeSpecifiers}).ParseFS(
		serviceFiles,
		"*.service",
	)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	folder := filepath.Join(l.dir(), "up", unitFolder)

	for file, name := range map[string]string{"network.service": "bijou-network.service", "agent.service": "bijou-agent.service"} {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, file, map[string]any{
			"Dir":        l.provider.env.Dir,
			"Tools":      l.tools,
			"Machine":    l.spec.Machine,
			"State":      l.state,
			"Address":    l.record.Address,
			"Route":      routeCommand(l.record.Address),
			"Repository": l.provider.aptRepository(),
		})
		if err != nil {
			return fmt.Errorf("cannot make unit file %q: %w", name, err)
		}

		if err := osutil.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o644, osutil.ExactMode); err != nil {
			return err
		}
		if err := osutil.Symlink("../"+name, filepath.Join(folder, "multi-user.target.wants", name)); err != nil {
			return err
		}
	}

	// These units of Debian's do no good in a container: those of apt would keep the hooks from it
	// at any moment.
	var masked []string
	for _, name := range []string{"apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer"} {
		masked = append(masked, filepath.Join(folder, name))
	}
	return osutil.Symlink("/dev/null", masked...)
}

// escapeSpecifiers escapes a path for a unit file, where systemd expands percent signs as specifiers.
func escapeSpecifiers(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// quoteWord quotes a word as "Command lines" of systemd.service(5) wants it.
func quoteWord(w string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(escapeSpecifiers(w)) + `"`
}

// routeCommand returns the command that sets the container's default route. It is "true" if this host does
// not forward packets, since a route that leads nowhere makes programs wait.
func routeCommand(address string) string {
	if !hostForwards() {
		return "true"
	}
	return fmt.Sprintf("ip route replace default via %s.%d",
		address[:strings.LastIndexByte(address, '.')], gatewayHost)
}

func hostForwards() bool {
	said, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	return strings.TrimSpace(string(said)) == "1"
}
