package nspawn

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// The bridge, the control groups and the folder go once there are no instances.
func (p *Provider) sweepShared(ctx context.Context) error {
	if _, err := os.Lstat(p.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := lockFolder(ctx, p.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	left, err := p.listInstances()
	if err != nil || len(left) > 0 {
		return err
	}
	if err := p.removeBridge(); err != nil {
		return err
	}
	if err := p.manager.close(); err != nil {
		return err
	}
	return os.RemoveAll(p.dir)
}
