package release

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/state/osutil"
	"bijou/updater/record"
)

// Recipe describes how to build a release.
type Recipe struct {
	Manifest   string // the path of the author's manifest, which names files by paths
	Version    string // the version, if the manifest does not contain it
	TagPrefix  string // the part of the tag before the version, without the hyphen
	PreRelease bool   // only for staging
	// Programs are the paths of this program's executables, one for each architecture.
	Programs []string
	// Packages are the paths of this program's Debian packages, one for each architecture. dpkg-deb unpacks
	// them.
	Packages []string
	Key      *SecretKey
	Running  string // the version of this program
	Dir      string // the directory of releases, which is created if it is missing
}

// Made is a release in the directory of releases.
type Made struct {
	Tag     string
	Dir     string
	Files   []string
	Existed bool // the directory already had the same release
}

// ErrOther is returned if the directory already has a release of the same version with different files.
var ErrOther = errors.New("this version already exists with different content")

// Make builds a release in the recipe's directory and adds it to the index. If the directory already has the same
// release, Make keeps it. It can be called again after a failure. It inspects the release as a leader does. It
// returns a [RefusedError] if servers would not install the release, and [ErrOther] if the directory has
// different files for that version.
func (r Recipe) Make(ctx context.Context) (made Made, err error) {
	data, err := os.ReadFile(r.Manifest)
	if err != nil {
		return made, fmt.Errorf("cannot read the manifest: %w", err)
	}
	text, m, parts, err := completeManifest(r.Manifest, data, r.Version)
	if err != nil {
		return made, err
	}

	tag := r.TagPrefix + "-" + m.Version
	if !isTag(tag) {
		return made, fmt.Errorf("cannot use %q as a tag", tag)
	}
	if err := osutil.MkdirAll(r.Dir, 0o755); err != nil {
		return made, fmt.Errorf("cannot create the directory of releases: %w", err)
	}

	// The lock makes sure that an existing draft comes from an interrupted call, and not from a running one.
	lock, err := osutil.LockFile(r.Dir)
	if err != nil {
		return made, err
	}
	defer lock.Close()
	draft := filepath.Join(r.Dir, ".draft")
	if err := os.RemoveAll(draft); err != nil {
		return made, err
	}
	defer os.RemoveAll(draft)

	packages, err := r.write(ctx, filepath.Join(draft, tag), m.Version, text, parts)
	if err != nil {
		return made, fmt.Errorf("cannot create the release: %w", err)
	}
	if err := r.inspect(ctx, draft, packages); err != nil {
		return made, err
	}

	return r.publish(draft, tag)
}

// write writes the files of the release into dir, and returns the packages among them.
func (r Recipe) write(
	ctx context.Context,
	dir, version string,
	manifest []byte,
	parts map[string]partFile,
) (packages []Package, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	v, err := ParseVersion(version)
	if err != nil {
		return nil, err
	}

	packages, err = r.writePackages(ctx, dir, v, manifest)
	if err != nil {
		return nil, err
	}
	for name, part := range parts {
		if err := copyPart(filepath.Join(dir, name), part); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), manifest, 0o644); err != nil {
		return nil, err
	}

	// The sums come last, since they cover all other files except the signature.
	sums, err := sumsOf(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, SumsFile), sums, 0o644); err != nil {
		return nil, err
	}
	if r.Key != nil {
		comment := "bijou " + version
		signature := r.Key.Sign(sums, comment)
		if err := os.WriteFile(filepath.Join(dir, SignatureFile), signature, 0o644); err != nil {
			return nil, err
		}
	}

	return packages, nil
}

// writePackages writes the release's packages into dir, and returns them. It makes a tarball from each
// program, and a Debian package from each package of the recipe.
func (r Recipe) writePackages(ctx context.Context, dir string, v Version, manifest []byte) (packages []Package, err error) {
	for _, program := range r.Programs {
		arch, err := archOf(program)
		if err != nil {
			return nil, err
		}
		if slices.Contains(packages, Package{Tarball, arch}) {
			return nil, fmt.Errorf("two programs are for %s", arch)
		}

		packages = append(packages, Package{Tarball, arch})
		err = writeTarball(filepath.Join(dir, AssetName(Tarball, v, arch)), program, manifest)
		if err != nil {
			return nil, err
		}
	}

	for _, deb := range r.Packages {
		arch, err := repackDeb(ctx, deb, dir, v, manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", deb, err)
		}
		if slices.Contains(packages, Package{Deb, arch}) {
			return nil, fmt.Errorf("two packages are for %s", arch)
		}
		packages = append(packages, Package{Deb, arch})
	}

	return packages, nil
}

// inspect checks the release as leaders do, for the architecture of each package.
func (r Recipe) inspect(ctx context.Context, draft string, packages []Package) error {
	if _, err := WriteIndex(draft); err != nil {
		return err
	}

	// Inspect does not depend on the environment, so any will do.
	config := record.Config{ReleaseFolder: draft, Env: record.EnvStaging}
	if r.Key != nil {
		config.MinisignKey = r.Key.Public()
	}
	source, err := NewSource(config)
	if err != nil {
		return err
	}
	defer source.Close()
	releases, err := source.Releases(ctx)
	if err != nil {
		return err
	}

	// The draft contains no other releases.
	drafted := releases[0]
	downloads := filepath.Join(draft, ".downloads")
	for _, p := range packages {
		_, err := source.Inspect(ctx, drafted, Inspection{
			Form:    p.Form,
			Arch:    p.Arch,
			Running: r.Running,
			Others:  packages,
			Dir:     downloads,
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// publish moves the release into the directory of releases, and writes the index. It keeps an existing release
// with the given tag and the same files, and returns ErrOther if one with different files exists.
func (r Recipe) publish(draft, tag string) (made Made, err error) {
	made = Made{Tag: tag, Dir: filepath.Join(r.Dir, tag)}
	from := filepath.Join(draft, tag)
	files, err := listRelease(from)
	if err != nil {
		return made, err
	}
	for _, f := range files {
		made.Files = append(made.Files, f.Name)
	}

	_, err = os.Lstat(made.Dir)
	made.Existed = !errors.Is(err, fs.ErrNotExist)
	if made.Existed {
		err = checkSameRelease(from, made.Dir)
	} else {
		err = moveRelease(from, made.Dir)
	}
	if err != nil {
		return made, err
	}

	var pre []string
	if r.PreRelease {
		pre = append(pre, tag)
	}
	_, err = WriteIndex(r.Dir, pre...)
	return made, err
}

// moveRelease syncs a release's directory and moves it, so that the destination has the whole release or
// nothing.
func moveRelease(from, to string) error {
	if err := osutil.SyncFileSystem(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return osutil.SyncDir(filepath.Dir(to))
}

// checkSameRelease returns ErrOther unless both directories have the same release, with the same sums and
// signature. It compares only SumsFile and SignatureFile, since the sums cover all other files. Both directories
// can lack the signature.
func checkSameRelease(draft, dir string) error {
	for _, name := range []string{SumsFile, SignatureFile} {
		want, wantErr := os.ReadFile(filepath.Join(draft, name))
		got, gotErr := os.ReadFile(filepath.Join(dir, name))
		isInOnlyOne := (wantErr == nil) != (gotErr == nil)
		if isInOnlyOne || !bytes.Equal(want, got) {
			return fmt.Errorf("%s has a different %s: %w", dir, name, ErrOther)
		}
	}

	return nil
}

// archOf returns the architecture of a Linux executable as a GOARCH. It reads the architecture from the ELF
// header.
func archOf(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()

	header := make([]byte, 20)
	if _, err := io.ReadFull(f, header); err != nil || string(header[:4]) != "\x7fELF" {
		return "", fmt.Errorf("%s is not a program for Linux", program)
	}
	// All supported architectures are little-endian.
	machine := binary.LittleEndian.Uint16(header[18:])
	arch := map[uint16]string{0x3e: "amd64", 0xb7: "arm64", 0xf3: "riscv64"}[machine]
	if arch == "" {
		return "", fmt.Errorf("%s is for a different kind of machine: %d", program, machine)
	}

	return arch, nil
}

// writeTarball packs a program and its manifest into a tarball at the path. The same files always result in
// the same bytes.
func writeTarball(path, program string, manifest []byte) (err error) {
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}

	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()

	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	if err := packFile(t, "bijou", 0o755, info.Size(), in); err != nil {
		return err
	}
	if err := packFile(t, ManifestFile, 0o644, int64(len(manifest)), bytes.NewReader(manifest)); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}

	return z.Close()
}

// packFile adds a file to the tarball. content must have exactly size bytes.
func packFile(t *tar.Writer, name string, mode, size int64, content io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size, Format: tar.FormatGNU}); err != nil {
		return err
	}
	_, err := io.Copy(t, content)
	return err
}

// copyPart copies a file of the release to the path to. It returns an error if the file has changed since its
// sum was computed, or if there is already a file at the path.
func copyPart(to string, part partFile) (err error) {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s would have the same name as a package in the release", part.Path)
	}
	in, err := os.Open(part.Path)
	if err != nil {
		return err
	}
	defer in.Close()

	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()

	sum, _, err := osutil.DigestReader(io.TeeReader(in, out))
	if err != nil {
		return err
	}
	if sum != part.Sum {
		return fmt.Errorf("%s has changed since its sum was computed", part.Path)
	}

	return nil
}

// sumsOf returns the sums of a directory's files in the format of sha256sum.
func sumsOf(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	var b strings.Builder
	for _, e := range entries {
		sum, _, err := osutil.DigestFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}

	return []byte(b.String()), nil
}
