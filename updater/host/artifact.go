package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bijou/state/osutil"
	"bijou/updater/release"
)

// artifactID returns an ID of the artifact. Different artifacts have different IDs. The ID is "" if a is nil.
func artifactID(a *release.Artifact) string {
	switch {
	case a == nil:
		return ""
	case a.Archive != nil:
		return "archive " + a.Archive.SHA256 + " " + a.Archive.To
	case a.Deb != nil:
		return "deb " + a.Deb.SHA256
	}

	return "image " + a.Image
}

// fetchArtifact downloads the component's artifact, without a change to the running version. It also unpacks an
// archive, next to that version. It does nothing if the component has no artifact.
func (h *Host) fetchArtifact(ctx context.Context, c release.Component) error {
	a := c.Artifact
	switch {
	case a == nil:
		return nil
	case a.Archive != nil:
		return h.fetchArchive(ctx, c)
	case a.Deb != nil:
		_, err := h.download(ctx, *a.Deb)
		return err
	}

	return pullImage(ctx, a.Image)
}

// installArtifact installs the downloaded artifact of the component: it switches the symlink to an archive,
// installs a package, or records the name of an image for the component's unit. It does nothing if there is no
// artifact.
func (h *Host) installArtifact(ctx context.Context, c release.Component) error {
	a := c.Artifact
	switch {
	case a == nil:
		return nil
	case a.Archive != nil:
		return switchTo(*a.Archive)
	case a.Deb != nil:
		return h.installDeb(ctx, c.Name, h.downloadPath(a.Deb.SHA256))
	}

	return h.writeImageEnv(c.Name, a.Image)
}

// fetchArchive downloads a component's archive, and unpacks it next to the running version.
func (h *Host) fetchArchive(ctx context.Context, c release.Component) error {
	archive := *c.Artifact.Archive
	path, err := h.download(ctx, archive)
	if err != nil {
		return err
	}

	recorded, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}

	// The recorded entries matter only if they are those of the same archive.
	var entries []string
	if recorded.Artifact == artifactID(c.Artifact) {
		entries = recorded.Unpacked
	}
	return unpackBeside(ctx, path, archive, entries)
}

// downloadPath returns the path of the download with the given sum.
func (h *Host) downloadPath(sum string) string { return filepath.Join(h.dir, "downloads", sum) }

// download downloads a file, unless it has already been downloaded, and returns its path. A file with a name
// is part of the release. All other files have a URL.
func (h *Host) download(ctx context.Context, f release.File) (path string, err error) {
	raw, err := hex.DecodeString(f.SHA256)
	if err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("cannot download %s: %q is not a SHA-256 sum", f, f.SHA256)
	}

	path = h.downloadPath(f.SHA256)
	if f.Name != "" {
		return path, h.downloadOfRelease(ctx, f, path)
	}

	return path, release.Download{
		Client: h.downloadClient.Load(),
		URL:    f.URL,
		Path:   path,
		SHA256: [sha256.Size]byte(raw),
	}.Get(ctx)
}

// downloadOfRelease downloads a file that is part of the release, from the configured source of releases.
func (h *Host) downloadOfRelease(ctx context.Context, f release.File, path string) error {
	source, err := release.NewSource(*h.config.Load())
	if err != nil {
		return fmt.Errorf("cannot download %s: %w", f, err)
	}
	defer source.Close()

	return source.FetchFile(ctx, f, path)
}

// removeDownloads removes the downloads of the files.
func (h *Host) removeDownloads(files []release.File) {
	for _, f := range files {
		// If this fails, RemoveOldDownloads removes the file later.
		_ = os.Remove(h.downloadPath(f.SHA256))
	}
}

// RemoveOldDownloads removes everything from the directory of downloads, except complete and incomplete
// downloads of the manifest's files. So it also removes other files that an interrupted update has left there.
func (h *Host) RemoveOldDownloads(m release.Manifest) error {
	wanted := map[string]bool{}
	for _, c := range m.Components {
		for _, f := range append(c.Artifact.Files(), c.Contents.Files()...) {
			wanted[f.SHA256] = true
		}
	}

	err := removeAllBut(filepath.Join(h.dir, "downloads"), func(name string) bool {
		// The name of an incomplete download has a suffix.
		sum, _, _ := strings.Cut(name, ".")
		return wanted[sum]
	})
	if err != nil {
		return fmt.Errorf("cannot remove old downloads: %w", err)
	}

	return nil
}

// runEngine runs podman or docker with the arguments, whichever is installed, and podman if both are.
func runEngine(ctx context.Context, args ...string) error {
	for _, name := range []string{"podman", "docker"} {
		if path, err := exec.LookPath(name); err == nil {
			return runCommand(ctx, append([]string{path}, args...))
		}
	}
	return errors.New("cannot handle container images: neither podman nor docker is installed")
}

// pullImage pulls a container image, unless this host already has it.
func pullImage(ctx context.Context, image string) error {
	isThere := runEngine(ctx, "image", "inspect", image) == nil
	if isThere {
		return nil
	}
	if err := runEngine(ctx, "pull", image); err != nil {
		return fmt.Errorf("cannot pull %s: %w", image, err)
	}

	return nil
}

// writeImageEnv writes the name of the component's image to a file for its unit. The unit reads the file
// with EnvironmentFile=/var/lib/neco/components/cke.env, and then uses $IMAGE.
func (h *Host) writeImageEnv(component, image string) error {
	path := filepath.Join(h.dir, "components", component+".env")
	err := osutil.WriteFile(path, []byte("IMAGE="+image+"\n"), 0o644)
	if err != nil {
		return fmt.Errorf("cannot record the image of %s: %w", component, err)
	}

	return nil
}
