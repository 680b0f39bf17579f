package etcdtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Version35 is that of the nested module testscripts/kit/etcdserver35.
const Version35 = "3.5.35"

// Binary35 is the server of the release before, for tests that update a cluster:
// what testscripts/kit/etcdserver/build etcdserver35 has built into the user's cache folder.
func Binary35() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "bijou-test", "etcd-"+Version35)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no etcd server at %s: testscripts/kit/etcdserver/build etcdserver35 makes it", path)
	}
	return path, nil
}
