package nspawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bijou/state/osutil"
)

const (
	// indexFolder is the directory of the index on this host, below the provider's directory.
	indexFolder = "apt"
	// repositoryRoot is the path of the index in a container, and repositoryPool is the path of the packages.
	repositoryRoot = "/srv/bijou-apt"
	repositoryPool = repositoryRoot + "/pool"
)

// repositorySource is the container's list of package sources if there is a repository. The list has no other
// source, since the containers of such an environment may not reach any.
const repositorySource = "# The directory that the model's nspawn.apt-repository names.\ndeb [trusted=yes] file:" + repositoryRoot + " ./\n"

func (p *Provider) aptRepository() string { return p.env.Config["apt-repository"] }

// indexRepository writes an apt index of the packages in the configured directory, unless an index of the
// same packages already exists. It prints its progress to boot.
func (p *Provider) indexRepository(ctx context.Context, boot io.Writer) error {
	from := p.aptRepository()
	if from == "" {
		return nil
	}
	if !filepath.IsAbs(from) {
		return fmt.Errorf("nspawn.apt-repository is %q: want an absolute path", from)
	}

	folder := filepath.Join(p.dir, indexFolder)
	lock, err := osutil.LockDir(ctx, folder)
	if err != nil {
		return err
	}
	defer lock.Close()

	packages, mark, err := listPackages(from)
	if err != nil {
		return fmt.Errorf("cannot use nspawn.apt-repository: %w", err)
	}

	if err := osutil.MkdirAll(filepath.Join(folder, "pool"), 0o755); err != nil {
		return err
	}
	// In the container, apt reads the directory as a different user.
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadFile(filepath.Join(folder, "made-of")); err == nil && string(old) == mark {
		return nil
	}

	fmt.Fprintf(boot, "indexing %d packages of %s\n", len(packages), from)
	var index bytes.Buffer
	for _, name := range packages {
		if err := writeIndexEntry(ctx, &index, from, name); err != nil {
			return fmt.Errorf("cannot use nspawn.apt-repository: %w", err)
		}
	}

	// apt reads the index as a different user, so its mode must not depend on the umask. Only this process
	// reads made-of.
	if err := osutil.WriteFile(filepath.Join(folder, "Packages"), index.Bytes(), 0o644, osutil.ExactMode); err != nil {
		return err
	}

	return osutil.WriteFile(filepath.Join(folder, "made-of"), []byte(mark), 0o644)
}

// listPackages returns the file names of a directory's packages, and a mark that changes if any of the
// packages changes.
func listPackages(folder string) (names []string, mark string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, "", err
	}
	var all strings.Builder

	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".deb") {
			continue
		}
		info, err := os.Stat(filepath.Join(folder, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}

		names = append(names, e.Name())
		fmt.Fprintf(&all, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
	}

	if len(names) == 0 {
		return nil, "", fmt.Errorf("the directory %q has no packages (*.deb)", folder)
	}

	return names, all.String(), nil
}

// writeIndexEntry writes a package's entry in the index, which is a paragraph in the format of deb822(5).
func writeIndexEntry(ctx context.Context, to *bytes.Buffer, folder, name string) error {
	path := filepath.Join(folder, name)
	control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", path).Output()
	if err != nil {
		return fmt.Errorf("cannot read the package %q with dpkg-deb: %w", path, err)
	}
	sum, size, err := osutil.DigestFile(path)
	if err != nil {
		return err
	}

	to.Write(bytes.TrimRight(control, "\n"))
	fmt.Fprintf(to, "\nFilename: ./pool/%s\nSize: %d\nSHA256: %s\n\n", name, size, sum)
	return nil
}
