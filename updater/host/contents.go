package host

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"bijou/updater/activity"
	"bijou/updater/release"
)

// DeliverContents uploads the component's contents to sabakan, except contents that sabakan already has. It then
// removes the files that it has downloaded. component.Contents must not be nil.
func (h *Host) DeliverContents(ctx context.Context, component release.Component) error {
	ctx = h.withTimeout(ctx, component)
	c := *component.Contents
	images, err := listImages(ctx, c)
	if err != nil {
		return err
	}
	if c.URL == "" && len(images)+len(c.OSImages)+len(c.Ignitions) > 0 {
		return errors.New("cannot upload contents: the manifest has no URL for sabakan: contents: {url: ...}")
	}

	s := sabakan{url: strings.TrimRight(c.URL, "/") + "/api/v1/", client: h.directClient}
	for _, i := range images {
		if err := h.uploadImage(ctx, s, i); err != nil {
			return err
		}
	}

	for _, o := range c.OSImages {
		if err := h.uploadOS(ctx, s, o); err != nil {
			return err
		}
	}

	for _, i := range c.Ignitions {
		if err := h.uploadIgnition(ctx, s, i); err != nil {
			return err
		}
	}

	h.removeDownloads(c.Files())
	return nil
}

// listImages returns the images that the manifest lists, and those that its command prints.
func listImages(ctx context.Context, c release.Contents) ([]string, error) {
	images := c.Images
	if len(c.ImagesOf) == 0 {
		return images, nil
	}

	var messages bytes.Buffer // what the command writes to stderr
	var out []byte
	err := retryHung(ctx, func(ctx context.Context) (err error) {
		doing := activity.Begin(ctx, "runs %q", strings.Join(c.ImagesOf, " "))
		defer doing.End()
		messages.Reset()
		list := newCommand(ctx, c.ImagesOf)
		list.Stderr = &messages
		out, err = list.Output()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the images: %q: %w: %s",
			c.ImagesOf, err, tail(messages.Bytes()))
	}

	return append(images, strings.Fields(string(out))...), nil
}

// uploadImage uploads a container image as an asset, unless sabakan has it.
func (h *Host) uploadImage(ctx context.Context, s sabakan, image string) error {
	asset := strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(image) + ".img"
	exists, err := s.exists(ctx, "assets/"+asset+"/meta")
	if err != nil {
		return err
	}
	if exists {
		return nil
	}
	if err := pullImage(ctx, image); err != nil {
		return err
	}

	path := filepath.Join(h.dir, "downloads", asset)
	defer os.Remove(path)
	// podman does not overwrite the incomplete file of an interrupted call.
	_ = os.Remove(path)
	if err := runEngine(ctx, "save", "-o", path, image); err != nil {
		return fmt.Errorf("cannot save %s: %w", image, err)
	}

	return s.putFile(ctx, "assets/"+asset, path)
}

// uploadOS uploads an operating system's kernel and initrd to sabakan, unless sabakan has them.
func (h *Host) uploadOS(ctx context.Context, s sabakan, o release.OSImage) error {
	ids, err := s.listIDs(ctx, "images/coreos")
	if err != nil {
		return err
	}
	if ids[o.ID] {
		return nil
	}

	kernel, err := h.download(ctx, o.Kernel)
	if err != nil {
		return err
	}
	initrd, err := h.download(ctx, o.Initrd)
	if err != nil {
		return err
	}

	path := filepath.Join(h.dir, "downloads", "os-"+o.ID+".tar")
	defer os.Remove(path)
	if err := writeBundle(path, map[string]string{"kernel": kernel, "initrd.gz": initrd}); err != nil {
		return fmt.Errorf("cannot bundle the system %s: %w", o.ID, err)
	}

	return s.putFile(ctx, "images/coreos/"+o.ID, path)
}

// writeBundle writes a tar archive of a kernel and an initrd. files has the paths of the files by their names
// in the archive, "kernel" and "initrd.gz".
func writeBundle(path string, files map[string]string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	w := tar.NewWriter(out)
	for _, name := range []string{"kernel", "initrd.gz"} {
		if err := addFile(w, name, files[name]); err != nil {
			return err
		}
	}

	return w.Close()
}

// addFile adds the file at path to the archive under the given name.
func addFile(w *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// uploadIgnition uploads an ignition file to sabakan, unless sabakan has it.
func (h *Host) uploadIgnition(ctx context.Context, s sabakan, i release.Ignition) error {
	ids, err := s.listIDs(ctx, "ignitions/"+i.Role)
	if err != nil {
		return err
	}
	if ids[i.ID] {
		return nil
	}
	path, err := h.download(ctx, i.File)
	if err != nil {
		return err
	}

	return s.putFile(ctx, "ignitions/"+i.Role+"/"+i.ID, path)
}

// sabakan is a client for sabakan's HTTP API (api.md of cybozu-go/sabakan's docs).
type sabakan struct {
	url    string // the URL of the API, with a slash at the end
	client *http.Client
}

// call sends a request to sabakan. path is relative to the URL of the API. body can be nil, and size is its
// number of bytes.
func (s sabakan) call(ctx context.Context, method, path string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}

	if body != nil {
		req.ContentLength = size
		req.Header.Set("Content-Type", "application/octet-stream")
	}

	return s.client.Do(req)
}

// get reads a JSON document from sabakan into the value to which into points. It returns false and no error if the
// document does not exist. With an error, exists means nothing.
func (s sabakan) get(ctx context.Context, path string, into any) (exists bool, err error) {
	resp, err := s.call(ctx, http.MethodGet, path, nil, 0)
	if err != nil {
		return false, fmt.Errorf("cannot ask sabakan for %s: %w", path, err)
	}
	defer resp.Body.Close()

	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, nil
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("cannot ask sabakan for %s: it answers %s", path, resp.Status)
	}

	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return true, fmt.Errorf("cannot ask sabakan for %s: %w", path, err)
	}
	if len(body) > maxAnswer {
		return true, fmt.Errorf("cannot ask sabakan for %s: its answer has more than %d bytes", path, maxAnswer)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return true, fmt.Errorf("cannot ask sabakan for %s: %w", path, err)
	}

	return true, nil
}

// maxAnswer limits the size of an answer from sabakan, in bytes.
const maxAnswer = 8 << 20

// exists reports whether sabakan has the document.
func (s sabakan) exists(ctx context.Context, path string) (bool, error) {
	var anything any
	return s.get(ctx, path, &anything)
}

// listIDs reads a list of IDs, or of objects with a field "id", and returns the set of IDs. It ignores numbers,
// booleans and lists. An object without the field, or null, counts as the ID "". listIDs returns an empty map if
// sabakan does not have the list.
func (s sabakan) listIDs(ctx context.Context, path string) (map[string]bool, error) {
	var list []json.RawMessage
	if _, err := s.get(ctx, path, &list); err != nil {
		return nil, err
	}

	ids := map[string]bool{}
	for _, raw := range list {
		var id string
		var object struct{ ID string }
		if json.Unmarshal(raw, &id) == nil {
			ids[id] = true
		} else if json.Unmarshal(raw, &object) == nil {
			ids[object.ID] = true
		}
	}

	return ids, nil
}

// putFile uploads a file. It also succeeds if sabakan already has the file.
func (s sabakan) putFile(ctx context.Context, path, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot upload %s to sabakan: %w", path, err)
		}
	}()

	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return err
	}
	resp, err := s.call(ctx, http.MethodPut, path, f, info.Size())
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	switch resp.StatusCode {
	// StatusConflict means that sabakan already has the file.
	case http.StatusOK, http.StatusCreated, http.StatusConflict:
		return nil
	}

	return fmt.Errorf("it answers %s: %s", resp.Status, tail(answer))
}
