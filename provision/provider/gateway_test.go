package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeGatewayDir checks that the directory of a confined machine is updated from the environment's
// record, without data that gives direct access to the state.
func TestMakeGatewayDir(t *testing.T) {
	dir := t.TempDir()
	write := func(tools string) {
		t.Helper()
		record := "name: a\nuuid: u\nstate: etcd://h1:2379/a?password-file=credentials/password-1\nprovider: nspawn\ntools: " + tools + "\nnewer: s3cr3t\n"
		if err := os.WriteFile(filepath.Join(dir, "environment.yaml"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, tools := range []string{"1-a", "2-b", "2-b"} {
		write(tools)
		if err := MakeGatewayDir(dir, "7"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(GatewayDir(dir, "7"), "environment.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want := "name: a\nuuid: u\nstate: " + GatewayURL(dir, "7") + "\nprovider: nspawn\ntools: " + tools + "\n"
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	var seen []string
	err := filepath.WalkDir(GatewayDir(dir, "7"), func(path string, _ os.DirEntry, err error) error {
		seen = append(seen, strings.TrimPrefix(path, GatewayDir(dir, "7")))
		return err
	})
	if got := strings.Join(seen, " "); err != nil || got != " /environment.yaml /gateway /gateway/7 /machines /tools" {
		t.Errorf("got %q, %v", got, err)
	}
}
