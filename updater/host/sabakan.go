package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// sabakan is a client of sabakan's HTTP API (api.md of cybozu-go/sabakan's docs).
type sabakan struct {
	url    string
	client *http.Client
}

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

func (s sabakan) get(ctx context.Context, path string, into any) (there bool, err error) {
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
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return false, fmt.Errorf("cannot ask sabakan for %s: %w", path, err)
	}
	return true, nil
}

func (s sabakan) exists(ctx context.Context, path string) (bool, error) {
	var anything any
	return s.get(ctx, path, &anything)
}

// listIDs reads a list of ids, or of objects with an "id".
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

// put does not mind if somebody else has uploaded that meanwhile.
func (s sabakan) put(ctx context.Context, path string, body io.Reader, size int64) error {
	resp, err := s.call(ctx, http.MethodPut, path, body, size)
	if err != nil {
		return fmt.Errorf("cannot upload %s to sabakan: %w", path, err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusConflict:
		return nil
	}
	return fmt.Errorf("cannot upload %s to sabakan: it answers %s: %s", path, resp.Status, tail(said))
}

func (s sabakan) putFile(ctx context.Context, path, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot upload %s to sabakan: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot upload %s to sabakan: %w", path, err)
	}
	return s.put(ctx, path, f, info.Size())
}
