package script

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/secret/record"
)

// MakeSecretDue is the program make-secret-due ID of scripts: it makes the rotation of that secret in the
// environment default due now. Scripts cannot wait for the rotation, since the shortest policy is an hour.
func MakeSecretDue() {
	if err := makeSecretDue(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func makeSecretDue(id string) error {
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
		r, err := record.Get(tx.View, id)
		if err != nil {
			return err
		}
		r.RotateAt = time.Now()
		return record.Put(tx, r)
	})
}
