package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"bijou/updater/release"
)

// engine is the program that runs containers on this server.
func engine() (string, error) {
	for _, name := range []string{"podman", "docker"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("cannot handle container images: neither podman nor docker is installed")
}

// pull brings the image to this server, unless it is there.
func pull(ctx context.Context, image string) error {
	e, err := engine()
	if err != nil {
		return err
	}
	if run(ctx, []string{e, "image", "inspect", image}) == nil {
		return nil
	}
	if err := run(ctx, []string{e, "pull", image}); err != nil {
		return fmt.Errorf("cannot pull %s: %w", image, err)
	}
	return nil
}

// save writes the image to a file as an archive.
func save(ctx context.Context, image, path string) error {
	e, err := engine()
	if err != nil {
		return err
	}
	if err := run(ctx, []string{e, "save", "-o", path, image}); err != nil {
		return fmt.Errorf("cannot save %s: %w", image, err)
	}
	return nil
}

// name writes which image the component is, where its unit can read it:
// EnvironmentFile=/var/lib/neco/components/cke.env, then $IMAGE.
func (h *Host) name(component, image string) error {
	path := filepath.Join(h.dir, "components", component+".env")
	if err := release.Keep(path, []byte("IMAGE="+image+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot say which image %s is: %w", component, err)
	}
	return nil
}
