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

// unitFolder is the directory of local unit files.
const unitFolder = "etc/systemd/system"

// prepareFiles creates the machine's directories, and writes its own files to up/, the upper layer of the
// overlay over the tree. It runs before each start of the container. It replaces the scripts and units each
// time, but writes all other files only once, since a charm may have changed them.
func (l launch) prepareFiles() error {
	if err := osutil.MkdirAll(l.dir(), 0o700); err != nil {
		return err
	}
	if err := l.writeCalls(); err != nil {
		return err
	}

	// In the container, the machine's own machines/ is mounted over this directory.
	if err := osutil.MkdirAll(filepath.Join(l.provider.env.Dir, "machines"), 0o755); err != nil {
		return err
	}
	// boot.sh uses this symlink as the lower layer of the overlay.
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

// writeCalls creates the directories below the machine's directory, and writes the scripts that call applets.
func (l launch) writeCalls() error {
	jujudDir := "var/lib/juju/tools/machine-" + l.spec.Machine
	for _, dir := range []string{
		"up",
		"work",
		"root",
		"machines/" + l.spec.Machine,
		"up/" + unitFolder + "/multi-user.target.wants",
		"up/" + jujudDir,
		"up/usr/bin",
	} {
		if err := l.makeFolder(dir); err != nil {
			return err
		}
	}

	// Charm libraries call jujud to find out Juju's version. Programs that charms run outside of hooks call
	// juju-exec and juju-run.
	for _, path := range []string{jujudDir + "/jujud", "usr/bin/juju-exec", "usr/bin/juju-run"} {
		if err := l.writeCall(path); err != nil {
			return err
		}
	}

	return nil
}

// writeCall writes a script that calls the applet of the same name. The script finds the directory of tools
// whenever it runs, since an upgrade replaces that directory.
func (l launch) writeCall(path string) error {
	script := fmt.Sprintf("#!/bin/sh\nfor j in %q/tools/*/%s; do exec \"$j\" \"$@\"; done\n",
		l.provider.env.Dir, filepath.Base(path))
	return osutil.WriteFile(filepath.Join(l.dir(), "up", path), []byte(script), 0o755, osutil.ExactMode)
}

// makeFolder creates a directory, and its parents, below the machine's directory. All users in the container
// can enter the new directories, regardless of the umask of this process. Existing directories do not change.
func (l launch) makeFolder(path string) error {
	dir := l.dir()
	for _, name := range strings.Split(path, "/") {
		dir = filepath.Join(dir, name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}

		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
		if err := osutil.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}

	return nil
}

// hostname returns the container's host name, such as "prod-3".
func (l launch) hostname() string { return l.provider.hostPrefix() + l.spec.Machine }

// hostPrefix returns the prefix of the machines' host names: the environment's name in lower case, without
// the characters that a host name cannot have, cut to maxLength, and with a hyphen at its end. It is "" if no
// letter or digit is left.
func (p *Provider) hostPrefix() string {
	const maxLength = 40
	name := strings.Map(func(r rune) rune {
		isLetter := r >= 'a' && r <= 'z'
		isDigit := r >= '0' && r <= '9'
		if isLetter || isDigit || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(p.env.Name))

	// A host name cannot begin with a hyphen.
	return strings.TrimLeft(name[:min(len(name), maxLength)]+"-", "-")
}

// machineID returns the content of machine-id(5) for a token. The same token always has the same ID.
func machineID(token string) string { return osutil.Digest([]byte("machine " + token))[:32] }

// writeOnce writes a file, unless the machine already has the file or has removed it.
func (l launch) writeOnce(path, text string) error {
	file := filepath.Join(l.dir(), "up", path)
	// If the machine has removed the file, the overlay has a special file in its place.
	_, err := os.Lstat(file)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.makeFolder("up/" + filepath.Dir(path)); err != nil {
		return err
	}

	return osutil.WriteFile(file, []byte(text), 0o644, osutil.ExactMode)
}

// writeUnits writes the unit files of the container's network and agent, and masks units that are not
// useful in a container.
func (l launch) writeUnits() error {
	functions := template.FuncMap{"word": quoteWord, "path": escapeSpecifiers}
	templates, err := template.New("").Funcs(functions).ParseFS(serviceFiles, "*.service")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	folder := filepath.Join(l.dir(), "up", unitFolder)

	for file, name := range map[string]string{"network.service": "bijou-network.service", "agent.service": "bijou-agent.service"} {
		var text strings.Builder
		err := templates.ExecuteTemplate(&text, file, map[string]any{
			"Dir":        l.provider.env.Dir,
			"Tools":      l.tools,
			"Machine":    l.spec.Machine,
			"State":      l.state,
			"Address":    l.record.Address,
			"Route":      routeCommand(l.record.Address),
			"Repository": l.provider.aptRepository(),
		})
		if err != nil {
			return fmt.Errorf("cannot create unit file %q: %w", name, err)
		}

		if err := osutil.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o644, osutil.ExactMode); err != nil {
			return err
		}
		if err := osutil.Symlink("../"+name, filepath.Join(folder, "multi-user.target.wants", name)); err != nil {
			return err
		}
	}

	// apt's timers could lock apt at any moment, and hooks could then not use apt. The other timers maintain
	// disks, which is up to the host.
	var masked []string
	for _, name := range []string{"apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer"} {
		masked = append(masked, filepath.Join(folder, name))
	}
	// systemd never starts a unit whose file is a symlink to /dev/null.
	return osutil.Symlink("/dev/null", masked...)
}

// escapeSpecifiers escapes a path for a unit file, where systemd expands percent signs as specifiers.
func escapeSpecifiers(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// quoteWord quotes a word for a command line in a unit file, as systemd.service(5) describes.
func quoteWord(w string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(escapeSpecifiers(w)) + `"`
}

// routeCommand returns the command that sets the container's default route. If this host does not forward
// packets, it returns the command "true", which does nothing. With a route, connections to other networks
// would then time out slowly instead of failing at once.
func routeCommand(address string) string {
	if !hostForwards() {
		return "true"
	}
	return fmt.Sprintf("ip route replace default via %s.%d",
		address[:strings.LastIndexByte(address, '.')], gatewayHost)
}

// hostForwards reports whether the host forwards packets of IPv4. It returns false if it cannot determine this.
func hostForwards() bool {
	setting, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	return strings.TrimSpace(string(setting)) == "1"
}
