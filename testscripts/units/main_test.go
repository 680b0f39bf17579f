package units

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/secrets"
	"bijou/testscripts/script"
)

// TestMain makes this binary every applet.
func TestMain(m *testing.M) { script.Main(m, 2, map[string]func(){"make-secret-due": makeSecretDue}) }

// TestScripts runs every *.txtar beside it over each store that processes can share.
func TestScripts(t *testing.T) { script.Run(t, script.Extras{}) }

// makeSecretDue has the rotation of the secret whose id is the argument be due now: the
// shortest policy is an hour.
func makeSecretDue() {
	err := func() error {
		e, err := home.Load(filepath.Join(os.Getenv("BIJOU_HOME"), "default"))
		if err != nil {
			return err
		}
		s, err := state.Open(context.Background(), e.State)
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Update(context.Background(), func(tx *state.Tx) error {
			r, err := secrets.Get(tx.View, os.Args[1])
			if err != nil {
				return err
			}
			r.RotateAt = time.Now()
			return secrets.Put(tx, r)
		})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
