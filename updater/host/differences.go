package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	sd "github.com/coreos/go-systemd/v22/dbus"

	"bijou/state/digest"
	"bijou/updater/release"
)

// inputsDigest returns the digest of what the component's services are started with:
// their unit files, and the files that the release declares. It is "" if neither is
// known.
func (h *Host) inputsDigest(ctx context.Context, c release.Component) (string, error) {
	sum, known := sha256.New(), len(c.Files) > 0
	for _, unit := range c.Services {
		text, err := h.services.Files(ctx, unit)
		if err != nil {
			return "", err
		}
		known = known || len(text) > 0
		fmt.Fprintf(sum, "%s %d\n%s\n", unit, len(text), text)
	}
	for _, f := range c.Files {
		own, _, err := digest.OfFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintln(sum, f.Path, own)
	}
	if !known {
		return "", nil
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (h *Host) inputsChanged(ctx context.Context, c release.Component, was componentRecord) (bool, error) {
	now, err := h.inputsDigest(ctx, c)
	return was.Inputs != "" && now != "" && now != was.Inputs, err
}

// Differences describes in which ways the component is not what the release says: by its
// record, and by its files.
func (h *Host) Differences(ctx context.Context, c release.Component) (all []string, err error) {
	was, err := h.readRecord(c.Name)
	if err != nil {
		return nil, err
	}
	if was.Phase == phaseChanging || was.Phase == phaseStarting {
		all = append(all, "an update of it was cut short")
	}
	if want := artifactID(c.Artifact); c.Artifact != nil && was.Artifact != want {
		all = append(all, fmt.Sprintf("its artifact is %q, not %q", was.Artifact, want))
	}
	for _, f := range c.Files {
		switch own, _, err := digest.OfFile(f.Path); {
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, f.Path+" is not there")
		case err != nil:
			return nil, err
		case own != f.SHA256:
			all = append(all, fmt.Sprintf("the sum of %s is %s, not %s", f.Path, own, f.SHA256))
		}
	}
	others, err := h.inputsChanged(ctx, c, was)
	if others {
		all = append(all, "its unit files or declared files have changed since it was started")
	}
	return all, err
}

// Files returns a unit's file and its drop-ins, without the one that holds the unit.
func (s Systemd) Files(ctx context.Context, unit string) (text []byte, err error) {
	err = s.withUnit(ctx, "read the files of", unit, func(c *sd.Conn) error {
		p, err := c.GetUnitPropertiesContext(ctx, unit)
		if err != nil {
			return err
		}
		text = nil
		fragment, _ := p["FragmentPath"].(string)
		more, _ := p["DropInPaths"].([]string)
		for _, file := range append([]string{fragment}, more...) {
			if file == "" || file == holdFile(unit) {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			text = fmt.Appendf(text, "# %s\n%s\n", file, data)
		}
		return nil
	})
	return text, err
}

// Files returns nothing: the program knows no unit files.
func (s ServiceCommand) Files(context.Context, string) ([]byte, error) { return nil, nil }
