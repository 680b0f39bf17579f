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

// Recipe says what a release is made of.
type Recipe struct {
	Manifest   string   // the path of the author's manifest, which names files by paths
	Version    string   // of a manifest that does not say it; "": it does
	TagPrefix  string   // what stands before the version in the tag
	PreRelease bool     // for staging only
	Programs   []string // paths of this program, for one architecture each
	Packages   []string // paths of its Debian packages, for one architecture each; dpkg-deb takes them apart
	Key        *SecretKey
	Running    string // the version of this program
	Dir        string // the folder of releases, which is made if it is not there
}

// Made is a release that lies in its folder.
type Made struct {
	Tag     string
	Dir     string
	Files   []string
	Existed bool // the same bytes were there already
}

// ErrOther is the error of a version that there is already, with other files.
var ErrOther = errors.New("a version is one set of bytes")

// Make makes a release in the recipe's directory and adds it to the index, or changes nothing. It inspects
// the release as a leader does. It returns a [RefusedError] if servers would not take the release, and
// [ErrOther] if the directory has different files of that version.
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
		return made, fmt.Errorf("cannot take %q for a tag", tag)
	}
	if err := osutil.MkdirAll(r.Dir, 0o755); err != nil {
		return made, fmt.Errorf("cannot make the folder of releases: %w", err)
	}

	// Whatever another call has left half-way is removed by the one that has the lock.
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
		return made, fmt.Errorf("cannot make the release: %w", err)
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

	for name, part := range parts {
		if err := copyPart(filepath.Join(dir, name), part); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), manifest, 0o644); err != nil {
		return nil, err
	}

	sums, err := sumsOf(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, SumsFile), sums, 0o644); err != nil {
		return nil, err
	}
	if r.Key != nil {
		signature := r.Key.Sign(sums, "bijou "+version)
		err = os.WriteFile(filepath.Join(dir, SignatureFile), signature, 0o644)
	}

	return packages, err
}

// inspect checks the release as leaders do, for each architecture that its packages are for.
func (r Recipe) inspect(ctx context.Context, draft string, packages []Package) error {
	if _, err := WriteIndex(draft); err != nil {
		return err
	}

	config := record.Config{ReleaseFolder: draft, Env: record.EnvStaging}
	if r.Key != nil {
		config.MinisignKey = r.Key.Public()
	}
	source, err := NewSource(config)
	if err != nil {
		return err
	}
	defer source.Close()
	all, err := source.Releases(ctx)
	if err != nil {
		return err
	}

	downloads := filepath.Join(draft, ".downloads")
	for _, p := range packages {
		_, err := source.Inspect(ctx, all[0], Inspection{
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

// publish moves the release to its place, and writes the index. It returns ErrOther if the place has
// different files.
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

	if _, err := os.Lstat(made.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := osutil.SyncFileSystem(from); err != nil {
			return made, err
		}
		if err := os.Rename(from, made.Dir); err != nil {
			return made, err
		}
		if err := osutil.SyncDir(r.Dir); err != nil {
			return made, err
		}
	} else {
		made.Existed = true
		if err := isSameRelease(from, made.Dir); err != nil {
			return made, err
		}
	}

	var pre []string
	if r.PreRelease {
		pre = append(pre, tag)
	}
	_, err = WriteIndex(r.Dir, pre...)
	return made, err
}

// isSameRelease returns ErrOther unless both folders have the same files.
func isSameRelease(draft, dir string) error {
	for _, name := range []string{SumsFile, SignatureFile} {
		want, missing := os.ReadFile(filepath.Join(draft, name))
		got, err := os.ReadFile(filepath.Join(dir, name))
		if (missing == nil) != (err == nil) || !bytes.Equal(want, got) {
			return fmt.Errorf("%s has another %s: %w", dir, name, ErrOther)
		}
	}

	return nil
}

// archOf returns the architecture of an executable, in Go's words.
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
	machine := binary.LittleEndian.Uint16(header[18:])
	arch := map[uint16]string{0x3e: "amd64", 0xb7: "arm64", 0xf3: "riscv64"}[machine]
	if arch == "" {
		return "", fmt.Errorf("%s is for a machine of another kind: %d", program, machine)
	}

	return arch, nil
}

// writeTarball packs a program and its manifest. The same files make the same bytes.
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

func packFile(t *tar.Writer, name string, mode, size int64, content io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size, Format: tar.FormatGNU}); err != nil {
		return err
	}
	_, err := io.Copy(t, content)
	return err
}

// copyPart copies a file that has not changed since its sum was taken.
func copyPart(to string, part partFile) (err error) {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s would have the name of a package of the release", part.Path)
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
	if err == nil && sum != part.Sum {
		err = fmt.Errorf("%s has changed meanwhile", part.Path)
	}
	return err
}

// sumsOf returns the sums of a folder's files, as sha256sum prints them.
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
