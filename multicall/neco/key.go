package neco

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"bijou/multicall/console"
	"bijou/state/osutil"
	"bijou/updater/release"
)

type keyCmd struct {
	File string `arg:"" help:"The file for the secret key. The public key goes to FILE.pub."`
}

// Run creates a key, and prints the public key. It writes the secret key to FILE and the public key to FILE.pub, which
// must not exist yet.
func (c keyCmd) Run(o *operator) error {
	for _, path := range []string{c.File, c.File + ".pub"} {
		_, err := os.Lstat(path)
		if err == nil {
			err := fmt.Errorf("cannot create a key: %s already exists", path)
			return console.Hint(err, "to keep the existing key and create a second one, give a different name: neco key FILE")
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot create a key: %w", err)
		}
	}

	key, err := release.NewSecretKey()
	if err != nil {
		return fmt.Errorf("cannot create a key: %w", err)
	}
	if err := osutil.WriteFile(c.File, []byte(key.File()), 0o600); err != nil {
		return fmt.Errorf("cannot write the secret key: %w", err)
	}
	if err := osutil.WriteFile(c.File+".pub", []byte(key.PublicFile()), 0o644); err != nil {
		return fmt.Errorf("cannot write the public key: %w", err)
	}

	o.note("keep %s secret; servers check releases with the public key:", c.File)
	return o.print(key.Public() + "\n")
}
