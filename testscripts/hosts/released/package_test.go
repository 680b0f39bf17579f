package released

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/need"
	"bijou/updater/release"
)

// commands lists the commands that a package has in /usr/bin.
var commands = []string{"bijou", "charm", "juju", "machine-agent", "neco", "neco-updater", "neco-worker", "provisioner", "unit-agent"}

// packed contains the two forms of a release, unpacked.
type packed struct {
	t       *testing.T
	arch    string
	call    []string // the command that runs its binary; empty if it needs none
	deb     string   // the tree of Debian's package
	tarball string   // the tarball's
}

// TestPackage checks that a release contains all promised files, in the right places.
func TestPackage(t *testing.T) {
	need.Whole(t)
	p := unpack(t, newRelease(t))
	p.hasNames()
	p.hasProgram()
	p.isAlike()
	for _, shell := range []struct{ name, script string }{{"bash", askBash}, {"zsh", askZsh}, {"fish", askFish}} {
		t.Run(shell.name, func(t *testing.T) { p.completes(t, shell.name, shell.script) })
	}
}

// TestPackageOfARM64 runs the release for arm64 under an emulator.
func TestPackageOfARM64(t *testing.T) {
	need.Long(t)
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		need.Skip(t, "qemu", err)
	}
	r := newRelease(t)
	// A binary that runs on this host generates the files that both packages share.
	r.Tarball(t)
	r.Arch, r.Binary = "arm64", versions.Build(t, []string{"GOARCH=arm64"})
	p := unpack(t, r)
	p.call = []string{emulator}
	p.hasNames()
	p.hasProgram()
	p.isAlike()
}

func newRelease(t *testing.T) versions.Release {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		need.Skip(t, "dpkg-deb", err)
	}
	return versions.Release{Version: "2026.11.24-1", Arch: runtime.GOARCH, Binary: versions.Current(t), Folder: t.TempDir()}
}

// unpack builds both forms under their usual names, and unpacks them.
func unpack(t *testing.T, r versions.Release) packed {
	t.Helper()
	p := packed{t: t, arch: r.Arch, deb: t.TempDir(), tarball: t.TempDir()}
	deb, tarball := r.Debian(t), r.Tarball(t)
	version, err := release.ParseVersion(r.Version)
	check(t, err)
	for form, path := range map[string]string{release.Deb: deb, release.Tarball: tarball} {
		if want := release.AssetName(form, version, r.Arch); filepath.Base(path) != want {
			t.Errorf("%s is looked for as %s", path, want)
		}
	}
	if got := p.run("dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Architecture}", deb); got != "neco "+r.Version+" "+r.Arch {
		t.Errorf("the package is %q", got)
	}
	p.run("dpkg-deb", "--extract", deb, p.deb)
	p.run("tar", "-C", p.tarball, "-xzf", tarball)
	return p
}

// run returns a command's output.
func (p packed) run(command ...string) string {
	p.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("cannot run %v: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// program runs the package's binary under one of its names.
func (p packed) program(path string, args ...string) string {
	p.t.Helper()
	return p.run(slices.Concat(p.call, []string{filepath.Join(p.deb, path)}, args)...)
}

// hasNames checks the links of all applets, and checks that /usr/bin contains exactly the commands.
func (p packed) hasNames() {
	p.t.Helper()
	binary := filepath.Join(p.deb, "usr/lib/bijou/bijou")
	links := []string{}
	for name := range strings.FieldsSeq(p.program("usr/lib/bijou/bijou", "--list")) {
		links = append(links, filepath.Join("usr/lib/bijou", name))
	}
	if len(links) < 40 {
		p.t.Errorf("there are %d applets only: %v", len(links), links)
	}
	for _, name := range commands {
		links = append(links, filepath.Join("usr/bin", name))
	}
	for _, link := range links {
		if to, err := filepath.EvalSymlinks(filepath.Join(p.deb, link)); err != nil || to != binary {
			p.t.Errorf("/%s leads to %q, %v", link, to, err)
		}
	}
	if names := p.run("ls", filepath.Join(p.deb, "usr/bin")); names != strings.Join(commands, "\n") {
		p.t.Errorf("in /usr/bin are %q", names)
	}
}

// hasProgram runs the binary as an operator's command, a boot server's command and a hook tool, and
// checks the files beside it.
func (p packed) hasProgram() {
	p.t.Helper()
	for _, tt := range []struct {
		path string
		args []string
		want string
	}{
		{"usr/bin/bijou", []string{"version"}, "linux/" + p.arch + ")\nearly client: yes"},
		{"usr/bin/juju", []string{"version"}, "-bijou-" + p.arch},
		{"usr/bin/neco", []string{"plan"}, "etcd/update"},
		{"usr/lib/bijou/relation-get", []string{"--help"}, "Usage: relation-get "},
		{"usr/lib/bijou/bijou-provider-local", []string{"--help"}, "provider"},
	} {
		if said := p.program(tt.path, tt.args...); !strings.Contains(said, tt.want) {
			p.t.Errorf("%s %v says no %q: %s", tt.path, tt.args, tt.want, said)
		}
	}
	for file, want := range map[string]string{
		"usr/lib/bijou/manifest.yaml":                   "version: 2026.11.24-1\n",
		"usr/lib/systemd/system/neco-worker.service":    "ExecStart=\"/usr/bin/neco-worker\"\n",
		"usr/lib/systemd/system/neco-updater.service":   "ExecStart=\"/usr/bin/neco-updater\"\n",
		"usr/share/doc/neco/copyright":                  "Apache License",
		"usr/share/bash-completion/completions/bijou":   "--complete",
		"usr/share/zsh/vendor-completions/_bijou":       "--complete",
		"usr/share/fish/vendor_completions.d/juju.fish": "--complete",
	} {
		path := filepath.Join(p.deb, file)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), want) {
			p.t.Errorf("/%s (%v) has no %q", file, err, want)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o644 {
			p.t.Errorf("/%s has mode %s", file, info.Mode())
		}
	}
	for _, name := range append(commands, "hook-tools") {
		pages, err := filepath.Glob(filepath.Join(p.deb, "usr/share/man/man*", name+".*.gz"))
		if err != nil || len(pages) != 1 || !strings.Contains(p.run("gzip", "-dc", pages[0]), ".SH NAME\n"+strings.ReplaceAll(name, "-", `\-`)) {
			p.t.Errorf("the manual of %s is %v, %v", name, pages, err)
		}
	}
}

// isAlike compares the content of both forms.
func (p packed) isAlike() {
	p.t.Helper()
	for _, name := range []string{"bijou", "manifest.yaml"} {
		p.run("cmp", filepath.Join(p.tarball, name), filepath.Join(p.deb, "usr/lib/bijou", name))
	}
	p.run("diff", "-r", "--exclude=doc", filepath.Join(p.tarball, "share"), filepath.Join(p.deb, "usr/share"))
}

// These scripts run a shell with the completion files of a package. They check whether each command has
// completion, and how the shell completes half a word.
const (
	askBash = `for name in "$@"; do
	complete -r
	source "$ROOT/usr/share/bash-completion/completions/$name" && complete -p "$name" >/dev/null || exit
done
COMP_WORDS=(juju remove-u) COMP_CWORD=1
_bijou
printf '%s\n' "${COMPREPLY[@]}"`
	askZsh = `fpath=($ROOT/usr/share/zsh/vendor-completions $fpath)
autoload -Uz compinit && compinit -u -D
for name in "$@"; do [[ $_comps[$name] == _bijou ]] || exit; done
_describe() { print -l -- "${(@)found%%:*}" }
words=(juju remove-u) CURRENT=2
_bijou`
	askFish = `for name in $argv
	complete -C "$name --" | string match -q -- '--help*' || exit 1
end
complete -C 'juju remove-u' | cut -f1`
)

// completes runs a shell, which must find the completion of all commands in the package.
func (p packed) completes(t *testing.T, shell, script string) {
	program, err := exec.LookPath(shell)
	if err != nil {
		need.Skip(t, shell, err)
	}
	cmd := exec.Command(program, append(map[string][]string{
		"bash": {"--norc", "-c", script, "bash"}, "zsh": {"-f", "-c", script, "zsh"}, "fish": {"-c", script},
	}[shell], commands...)...)
	cmd.Env = append(os.Environ(), "ROOT="+p.deb, "HOME="+t.TempDir(), "XDG_DATA_DIRS="+filepath.Join(p.deb, "usr/share")+":/usr/share",
		"PATH="+filepath.Join(p.deb, "usr/bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "remove-unit\n" {
		t.Errorf("%s completes to %q, %v", shell, out, err)
	}
}
