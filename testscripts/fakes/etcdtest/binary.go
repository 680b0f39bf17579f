package etcdtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bijou/testscripts/kit/need"
)

// Version is the version of the server that the nested module testscripts/kit/etcdserver pins.
const Version = "3.6.16"

// Binary returns the path of the server to run. This is the server that BIJOU_ETCD names, or else the server
// that testscripts/kit/etcdserver/build has built into the user's cache directory.
func Binary() (string, error) {
	path := os.Getenv("BIJOU_ETCD")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(cache, "bijou-test", "etcd-"+Version)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no etcd server at %s: testscripts/kit/etcdserver/build makes it", path)
	}
	return path, nil
}

// Need skips the test with one line if there is no server to run, or fails it
// if BIJOU_TEST_REQUIRE names etcd.
func Need(t testing.TB) {
	t.Helper()
	if _, err := Binary(); err != nil {
		need.Skip(t, "etcd", err)
	}
}
