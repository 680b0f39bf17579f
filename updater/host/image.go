package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"bijou/state/durable"
)

func findEngine() (string, error) {
	for _, name := range []string{"podman", "docker"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("cannot handle container images: neither podman nor docker is installed")
}

func pullImage(ctx context.Context, image string) error {
	engine, err := findEngine()
	if err != nil || runCommand(ctx, []string{engine, "image", "inspect", image}) == nil {
		return err
	}
	if err := runCommand(ctx, []string{engine, "pull", image}); err != nil {
		return fmt.Errorf("cannot pull %s: %w", image, err)
	}
	return nil
}

func saveImage(ctx context.Context, image, path string) error {
	engine, err := findEngine()
	if err != nil {
		return err
	}
	if err := runCommand(ctx, []string{engine, "save", "-o", path, image}); err != nil {
		return fmt.Errorf("cannot save %s: %w", image, err)
	}
	return nil
}

// writeImageEnv tells the component's unit which image it is:
// EnvironmentFile=/var/lib/neco/components/cke.env, then $IMAGE.
func (h *Host) writeImageEnv(component, image string) error {
	path := filepath.Join(h.dir, "components", component+".env")
	if err := durable.WriteFile(path, []byte("IMAGE="+image+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot say which image %s is: %w", component, err)
	}
	return nil
}
