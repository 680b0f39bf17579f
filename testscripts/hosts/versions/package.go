package versions

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Release is the input of a release's package.
type Release struct {
	Version, Arch string
	Binary        string // its path
	Manifest      string // its path; "" for the built-in one
	// Folder is the directory for the package. Packages of the same test share it and the files that do not
	// depend on the binary. This host must be able to run the Binary of the first package that is built
	// there.
	Folder string
}

// Debian packs the release as .ci/release does, but with less compression, and returns the package's
// path.
func (r Release) Debian(t testing.TB) (deb string) {
	t.Helper()
	r.pack(t, "debian")
	return filepath.Join(r.Folder, "neco_"+r.Version+"_"+r.Arch+".deb")
}

// Tarball packs the release as a tarball, as .ci/release does, and returns the tarball's path.
func (r Release) Tarball(t testing.TB) (path string) {
	t.Helper()
	r.pack(t, "tarball")
	return filepath.Join(r.Folder, "bijou_"+r.Version+"_linux_"+r.Arch+".tar.gz")
}

func (r Release) pack(t testing.TB, form string) {
	t.Helper()
	scripts := filepath.Dir(findBuild(t))
	if r.Manifest == "" {
		r.Manifest = filepath.Join(scripts, "../updater/release/manifest.yaml")
	}
	pack := exec.Command(filepath.Join(scripts, "package"), r.Version, r.Arch, r.Binary, r.Manifest, filepath.Join(r.Folder, "common"), r.Folder, form)
	pack.Env = append(os.Environ(), "DPKG_DEB_COMPRESSOR_TYPE=gzip", "DPKG_DEB_COMPRESSOR_LEVEL=1")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("cannot pack release %s: %v\n%s", r.Version, err, out)
	}
}
