package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"bijou/updater/release"
)

// identity is which artifact it is, in a word.
func identity(a *release.Artifact) string {
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

// prepare brings the artifact to this server's disk.
func (h *Host) prepare(ctx context.Context, c release.Component) error {
	a := c.Artifact
	switch {
	case a == nil:
		return nil
	case a.Archive != nil:
		path, err := h.download(ctx, *a.Archive)
		if err != nil {
			return err
		}
		return unpackBeside(ctx, path, *a.Archive)
	case a.Deb != nil:
		_, err := h.download(ctx, *a.Deb)
		return err
	}
	return pull(ctx, a.Image)
}

// replace puts the artifact in place of the former one.
func (h *Host) replace(ctx context.Context, c release.Component) error {
	a := c.Artifact
	switch {
	case a == nil:
		return nil
	case a.Archive != nil:
		return switchTo(*a.Archive)
	case a.Deb != nil:
		return h.installDeb(ctx, c.Name, h.downloaded(a.Deb.SHA256))
	}
	return h.name(c.Name, a.Image)
}

// downloaded is where a download of that sum lies.
func (h *Host) downloaded(sum string) string { return filepath.Join(h.dir, "downloads", sum) }

// download gets the file, unless it is there.
func (h *Host) download(ctx context.Context, f release.File) (path string, err error) {
	raw, err := hex.DecodeString(f.SHA256)
	if err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("cannot download %s: %q is no SHA-256 sum", f.URL, f.SHA256)
	}
	path = h.downloaded(f.SHA256)
	return path, release.Download{Client: h.downloads.Load(), URL: f.URL, Path: path, SHA256: [sha256.Size]byte(raw)}.Get(ctx)
}

// forget removes downloads that are installed.
func (h *Host) forget(a *release.Artifact) {
	for _, f := range []*release.File{a.Archive, a.Deb} {
		if f != nil {
			_ = os.Remove(h.downloaded(f.SHA256)) // else it takes room, and no more
		}
	}
}
