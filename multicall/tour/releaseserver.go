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
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// repository is the demo's, and demoTimeout how long each part of it may take.
const (
	repository  = "example/boot"
	demoTimeout = 2 * time.Minute
)

// releaseServer answers as GitHub's API does for one repository, and receives alerts besides.
type releaseServer struct {
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
	alerts   chan string

	mu        sync.Mutex
	published []map[string]any  // in GitHub's words
	files     map[string][]byte // by path
}

func startReleaseServer() (*releaseServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot serve releases: %w", err)
	}
	r := &releaseServer{listener: l, alerts: make(chan string, 100), files: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/repos/"+repository+"/releases", r.serveList)
	mux.HandleFunc("GET /files/", r.serveFile)
	mux.HandleFunc("POST /alerts", r.receiveAlert)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	r.serving.Go(func() { _ = r.server.Serve(l) }) // until close
	return r, nil
}

func (r *releaseServer) baseURL() string { return "http://" + r.listener.Addr().String() + "/" }

func (r *releaseServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		_ = r.server.Close()
	}
	r.serving.Wait()
}

func (r *releaseServer) serveList(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(r.published) // whoever hangs up does not read it
}

func (r *releaseServer) serveFile(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	data, ok := r.files[req.URL.Path]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, req)
		return
	}
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
}

// receiveAlert drops alerts of updates that begin, which the demo shows anyway.
func (r *releaseServer) receiveAlert(_ http.ResponseWriter, req *http.Request) {
	var alert struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	if json.NewDecoder(io.LimitReader(req.Body, 1<<16)).Decode(&alert) == nil && alert.Kind != "started" {
		r.alerts <- alert.Message
	}
}

func (d *demo) publishRelease(version string) error {
	plan := makeManifest(version)
	tarball, err := packTarball(plan)
	if err != nil {
		return fmt.Errorf("cannot make a release: %w", err)
	}
	name := fmt.Sprintf("bijou_%s_linux_%s.tar.gz", version, runtime.GOARCH)
	d.releases.addRelease(version, map[string][]byte{
		name: tarball, "manifest.yaml": []byte(plan),
		"SHA256SUMS": fmt.Appendf(nil, "%x  %s\n%x  manifest.yaml\n", sha256.Sum256(tarball), name, sha256.Sum256([]byte(plan))),
	})
	return nil
}

func (r *releaseServer) addRelease(version string, files map[string][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var assets []map[string]any
	for name, data := range files {
		path := "/files/" + version + "/" + name
		r.files[path] = data
		assets = append(assets, map[string]any{"name": name, "size": len(data), "browser_download_url": "http://" + r.listener.Addr().String() + path})
	}
	r.published = slices.Insert(r.published, 0, map[string]any{"tag_name": "release-" + version, "assets": assets})
}

// packTarball does not compress: the tarball does not leave this machine.
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
	}{{"bijou", 0o755, binary}, {"manifest.yaml", 0o644, []byte(manifest)}} {
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

// manifestTemplate has VERSION in the place of the release's.
//
//go:embed demomanifest.yaml
var manifestTemplate string

func makeManifest(version string) string {
	return strings.ReplaceAll(manifestTemplate, "VERSION", version)
}
