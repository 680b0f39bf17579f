package tour

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"bijou/state/osutil"
)

// repository is the name of the demo's repository of releases.
const repository = "example/boot"

// demoTimeout limits each wait of the demo.
const demoTimeout = 2 * time.Minute

// releaseServer serves files like GitHub's API for one repository. It also receives alerts.
type releaseServer struct {
	url     string // ends with a slash
	dir     string // the directory of the files
	server  *http.Server
	serving sync.WaitGroup
	alerts  chan string // the messages of received alerts; has room for all alerts of a demo

	published []map[string]any // the releases in the form of GitHub's API
}

// startReleaseServer serves the files below dir on a free port of this host, and receives alerts at /alerts, until
// close is called.
func startReleaseServer(dir string) (*releaseServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot serve releases: %w", err)
	}

	r := &releaseServer{url: "http://" + l.Addr().String() + "/", dir: dir, alerts: make(chan string, 100)}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("POST /alerts", r.receiveAlert)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	r.serving.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

// close stops serving. It waits for running requests, but at most a second.
func (r *releaseServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		// A request is still running. Close ends it.
		_ = r.server.Close()
	}
	r.serving.Wait()
}

// receiveAlert receives an alert, and keeps its message in r.alerts. It drops alerts about the beginning of
// updates, which the demo shows anyway, and requests that it cannot decode.
func (r *releaseServer) receiveAlert(_ http.ResponseWriter, req *http.Request) {
	var alert struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	if json.NewDecoder(io.LimitReader(req.Body, 1<<16)).Decode(&alert) == nil && alert.Kind != "started" {
		r.alerts <- alert.Message
	}
}

// publish publishes a release of this binary under the version. It writes the release's files before it lists the
// release.
func (r *releaseServer) publish(version string) error {
	manifest := makeManifest(version)
	tarball, err := packTarball(manifest)
	if err != nil {
		return fmt.Errorf("cannot create a release: %w", err)
	}

	tarballName := fmt.Sprintf("bijou_%s_linux_%s.tar.gz", version, runtime.GOARCH)
	sums := fmt.Appendf(nil, "%x  %s\n%x  manifest.yaml\n",
		sha256.Sum256(tarball), tarballName, sha256.Sum256([]byte(manifest)))

	assets, err := r.writeAssets(version, map[string][]byte{
		tarballName:     tarball,
		"manifest.yaml": []byte(manifest),
		"SHA256SUMS":    sums,
	})
	if err != nil {
		return err
	}

	// The newest release comes first, as in GitHub's API.
	r.published = slices.Insert(r.published, 0, map[string]any{
		"tag_name": "release-" + version,
		"assets":   assets,
	})

	list, err := json.Marshal(r.published)
	if err != nil {
		return err
	}
	return r.writeFile("api/v3/repos/"+repository+"/releases", list)
}

// writeAssets writes the files of a release. The keys of files are names, and the values are contents. It returns the
// files in the form of GitHub's API.
func (r *releaseServer) writeAssets(version string, files map[string][]byte) (assets []map[string]any, err error) {
	for name, data := range files {
		path := "files/" + version + "/" + name
		if err := r.writeFile(path, data); err != nil {
			return nil, err
		}

		assets = append(assets, map[string]any{
			"name":                 name,
			"size":                 len(data),
			"browser_download_url": r.url + path,
		})
	}

	return assets, nil
}

// writeFile writes a file below the directory of the server. path is the path of its URL.
func (r *releaseServer) writeFile(path string, data []byte) error {
	file := filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return osutil.WriteFile(file, data, 0o644)
}

// packTarball returns a tarball with the running binary and the manifest. The tarball has the format of gzip without
// compression, since it does not leave this machine.
func packTarball(manifest string) ([]byte, error) {
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}

	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		return nil, err
	}

	t := tar.NewWriter(z)
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{
		{name: "bijou", mode: 0o755, data: binary},
		{name: "manifest.yaml", mode: 0o644, data: []byte(manifest)},
	} {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}

	err = errors.Join(t.Close(), z.Close())
	return b.Bytes(), err
}

// manifestTemplate has VERSION in place of the release's version.
//
//go:embed demomanifest.yaml
var manifestTemplate string

// makeManifest returns the manifest of the demo's release with this version.
func makeManifest(version string) string {
	return strings.ReplaceAll(manifestTemplate, "VERSION", version)
}
