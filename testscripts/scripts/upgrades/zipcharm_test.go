package upgrades

import (
	"archive/zip"
	"bytes"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// zipCharm FILE DIR [NAME]: archives the charm in DIR, and adds a file with that name, which may contain any
// characters.
func zipCharm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: zipcharm FILE DIR [NAME]")
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	ts.Check(z.AddFS(os.DirFS(ts.MkAbs(args[1]))))
	if len(args) == 3 {
		w, err := z.Create(args[2])
		ts.Check(err)
		_, err = w.Write([]byte("hostile\n"))
		ts.Check(err)
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), packed.Bytes(), 0o600))
}
