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

// repositorySource is the container's list of package sources if the settings name a repository. The list has
// only this source, since such a container may have no network on which it could reach others.
const repositorySource = "# The directory that the model's nspawn.apt-repository names.\ndeb [trusted=yes] file:" + repositoryRoot + " ./\n"

// aptRepository returns the configured directory of packages, or "" if none is configured.
func (p *Provider) aptRepository() string { return p.env.Config["apt-repository"] }

// indexRepository writes an apt index of the packages in the configured directory, unless an index of the
// same packages already exists. It does nothing if no directory is configured. It prints its progress to
// boot.
func (p *Provider) indexRepository(ctx context.Context, boot io.Writer) error {
	repository := p.aptRepository()
	if repository == "" {
		return nil
	}
	if !filepath.IsAbs(repository) {
		return fmt.Errorf("nspawn.apt-repository is %q: want an absolute path", repository)
	}

	indexDir := filepath.Join(p.dir, indexFolder)
	lock, err := osutil.LockDir(ctx, indexDir)
	if err != nil {
		return err
	}
	defer lock.Close()

	packages, mark, err := listPackages(repository)
	if err != nil {
		return fmt.Errorf("cannot use nspawn.apt-repository: %w", err)
	}

	// The container mounts the packages at pool/.
	if err := osutil.MkdirAll(filepath.Join(indexDir, "pool"), 0o755); err != nil {
		return err
	}
	// In the container, apt reads the directory as a different user.
	if err := os.Chmod(indexDir, 0o755); err != nil {
		return err
	}

	// This file contains the mark of the packages in the existing index.
	markFile := filepath.Join(indexDir, "made-of")
	if indexed, err := os.ReadFile(markFile); err == nil && string(indexed) == mark {
		return nil
	}

	fmt.Fprintf(boot, "indexing %d packages of %s\n", len(packages), repository)
	if err := writeIndex(ctx, indexDir, repository, packages); err != nil {
		return err
	}

	return osutil.WriteFile(markFile, []byte(mark), 0o644)
}

// writeIndex writes the file Packages in indexDir, an apt index. packages are the file names of the packages in the
// directory repository.
func writeIndex(ctx context.Context, indexDir, repository string, packages []string) error {
	var index bytes.Buffer
	for _, name := range packages {
		if err := writeIndexEntry(ctx, &index, repository, name); err != nil {
			return fmt.Errorf("cannot use nspawn.apt-repository: %w", err)
		}
	}

	// apt reads the index as a different user, so its mode must not depend on the umask.
	return osutil.WriteFile(filepath.Join(indexDir, "Packages"), index.Bytes(), 0o644, osutil.ExactMode)
}

// listPackages returns the file names of the packages (*.deb) in the directory repository. The mark changes if the
// name, size or modification time of a package changes. It returns an error if the directory has no packages.
func listPackages(repository string) (names []string, mark string, err error) {
	entries, err := os.ReadDir(repository)
	if err != nil {
		return nil, "", err
	}
	var marks strings.Builder

	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".deb") {
			continue
		}
		info, err := os.Stat(filepath.Join(repository, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			// The package was removed in the meantime, or is a broken symlink.
			continue
		}
		if err != nil {
			return nil, "", err
		}

		names = append(names, e.Name())
		fmt.Fprintf(&marks, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
	}

	if len(names) == 0 {
		return nil, "", fmt.Errorf("the directory %q has no packages (*.deb)", repository)
	}

	return names, marks.String(), nil
}

// writeIndexEntry writes a package's entry in the index, which is a paragraph in the format of deb822(5).
func writeIndexEntry(ctx context.Context, to *bytes.Buffer, repository, name string) error {
	path := filepath.Join(repository, name)
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
