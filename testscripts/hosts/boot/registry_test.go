package boot

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// registry serves container images by the OCI's distribution specification, as far as podman needs it. Every
// requested image exists. It consists of the file "resident" from the directory, and of a file "image" that
// contains the tag.
func registry(dir string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v2/{name}/manifests/{tag}", func(w http.ResponseWriter, r *http.Request) {
		manifest, err := image(dir, r.PathValue("name"), r.PathValue("tag"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest(manifest))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(manifest))
	})
	mux.HandleFunc("GET /v2/{name}/blobs/{digest}", func(w http.ResponseWriter, r *http.Request) {
		blob, err := os.ReadFile(filepath.Join(dir, "blobs", r.PathValue("digest")))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blob))
	})
	return hanging(filepath.Join(dir, "hang"), mux)
}

// hanging never answers requests for setup-hw from the host whose address is in the file.
func hanging(file string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if address, err := os.ReadFile(file); err == nil && strings.HasPrefix(r.URL.Path, "/v2/setup-hw/") && strings.TrimSpace(string(address)) == host {
			<-r.Context().Done()
			return
		}
		h.ServeHTTP(w, r)
	})
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// image creates an image with one layer. Its parts go into the directory "blobs".
func image(dir, name, tag string) (manifest []byte, err error) {
	program, err := os.ReadFile(filepath.Join(dir, "resident"))
	if err != nil {
		return nil, err
	}
	layer := tarOf([]entry{{"resident", 0o755, program}, {"image", 0o644, []byte(name + ":" + tag + "\n")}})
	type object map[string]any
	config, _ := json.Marshal(object{
		"architecture": "amd64", "os": "linux", "config": object{"Entrypoint": []string{"/resident"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	part := func(kind string, data []byte) object {
		return object{"mediaType": kind, "size": len(data), "digest": digest(data)}
	}
	manifest, _ = json.Marshal(object{
		"schemaVersion": 2, "mediaType": manifestType, "config": part(configType, config), "layers": []object{part(layerType, layer)},
	})
	return manifest, errors.Join(keep(dir, layer), keep(dir, config))
}

// entry is a file of a layer.
type entry struct {
	name string
	mode int64
	data []byte
}

func tarOf(entries []entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		// Writing to a buffer never fails.
		_ = w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data))})
		_, _ = w.Write(e.data)
	}
	_ = w.Close()
	return b.Bytes()
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// keep writes a blob in one step, because three servers ask for it at the same time.
func keep(dir string, data []byte) error {
	path := filepath.Join(dir, "blobs", digest(data))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	draft, err := os.CreateTemp(filepath.Join(dir, "blobs"), "draft-")
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	return errors.Join(err, draft.Close(), os.Rename(draft.Name(), path))
}
