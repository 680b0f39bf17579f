package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"bijou/state/childenv"
)

// repackDeb copies neco's package deb into dir, the directory of a release, with the given manifest and
// version. It unpacks the package in a temporary directory beside dir. It returns the package's architecture.
// With the same version of dpkg-deb, the same input results in the same bytes.
func repackDeb(ctx context.Context, deb, dir string, v Version, manifest []byte) (arch string, err error) {
	root, err := os.MkdirTemp(filepath.Dir(dir), ".package-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	if err := runDpkgDeb(ctx, nil, "--raw-extract", deb, root); err != nil {
		return "", err
	}

	program := filepath.Join(root, "usr", "lib", "bijou", "bijou")
	info, err := os.Stat(program)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the file is not a package of neco: it does not contain /usr/lib/bijou/bijou")
	}
	if err != nil {
		return "", err
	}

	control := filepath.Join(root, "DEBIAN", "control")
	text, err := os.ReadFile(control)
	if err != nil {
		return "", err
	}
	arch = controlField(text, "Architecture")
	if name := controlField(text, "Package"); name != "neco" {
		return "", fmt.Errorf("the file is a package of %q, not of neco", name)
	}
	if !isPlainName(arch) {
		return "", fmt.Errorf("the package of neco has no valid architecture: %q", arch)
	}

	changed := map[string][]byte{
		control: regexp.MustCompile(`(?m)^Version:.*$`).ReplaceAll(text, []byte("Version: "+v.String())),
		filepath.Join(filepath.Dir(program), ManifestFile): manifest,
	}
	for path, data := range changed {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
		// The file gets the time of the program, so that the package does not depend on the current time.
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			return "", err
		}
	}

	// If the package has this file with sums, they are the sums of the original files.
	_ = os.Remove(filepath.Join(root, "DEBIAN", "md5sums"))

	epoch := "SOURCE_DATE_EPOCH=" + strconv.FormatInt(info.ModTime().Unix(), 10)
	to := filepath.Join(dir, AssetName(Deb, v, arch))
	return arch, runDpkgDeb(ctx, []string{epoch}, "--root-owner-group", "--build", root, to)
}

// controlField returns the value of the field in a package's control file, or "" if there is no such field.
func controlField(control []byte, name string) string {
	for line := range strings.Lines(string(control)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// runDpkgDeb runs dpkg-deb, with env added to its environment. It returns errNoUnpacker if dpkg-deb is not
// installed. If dpkg-deb fails, the error contains its output.
func runDpkgDeb(ctx context.Context, env []string, args ...string) error {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return errNoUnpacker
	}

	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(childenv.New(os.Environ(), childenv.Program), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, strings.TrimSpace(string(out)))
	}

	return nil
}
