package etcdtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Compact deletes the history of the whole cluster up to its newest revision, on disk too, and returns that
// revision. It waits until the deletion is complete. It does not fail if there was no commit since the last
// call.
func (m *Member) Compact() (revision string, err error) {
	var now struct{ Header struct{ Revision string } }
	if err := m.ask("/v3/kv/range", `{"key":"AA==","count_only":true}`, &now); err != nil {
		return "", err
	}
	revision = now.Header.Revision
	err = m.ask("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, revision), nil)
	if err != nil && strings.Contains(err.Error(), "required revision has been compacted") {
		return revision, nil
	}
	return revision, err
}

// Defragment rebuilds the member's database file. The member does not answer during this.
func (m *Member) Defragment() error { return m.ask("/v3/maintenance/defragment", "{}", nil) }

// ask calls etcd's own JSON gateway, which needs no etcd client.
func (m *Member) ask(path, body string, into any) error { return m.askAs("", path, body, into) }

// askAs is ask with the token of a login.
func (m *Member) askAs(token, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := m.transport().RoundTrip(req)
	if err != nil {
		return fmt.Errorf("cannot ask member %s: %w", m.name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("cannot ask member %s: %w", m.name, err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("cannot ask member %s for %s: %s: %s", m.name, path, resp.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}

// transport returns an HTTP transport over the member's client socket.
func (m *Member) transport() *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.Socket())
	}
	return &http.Transport{DialContext: dial, DisableKeepAlives: true}
}
