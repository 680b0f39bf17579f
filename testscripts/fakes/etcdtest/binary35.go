package etcdtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Version35 is the version of the nested module testscripts/kit/etcdserver35.
const Version35 = "3.5.35"

// Binary35 returns the server of the previous release, for tests that update a cluster.
// testscripts/kit/etcdserver/build etcdserver35 builds it into the user's cache directory.
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
