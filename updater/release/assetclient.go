package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"bijou/state/backoff"
)

// assetClient downloads the files of releases by HTTP, or through a transport that behaves like HTTP.
type assetClient struct {
	client *http.Client
	header http.Header // additional headers that the server needs, such as credentials
}

// maxSmallSize limits files that are read into memory, in bytes.
const maxSmallSize = 1 << 20

// Read returns the contents of a file of at most maxSmallSize bytes. It makes up to maxTries tries with growing
// delays, but does not retry after a permanent error, or when ctx is done.
func (c assetClient) Read(ctx context.Context, a Asset) ([]byte, error) {
	delay := minRetryDelay
	for try := 1; ; try++ {
		data, err := c.readOnce(ctx, a)
		if err == nil {
			return data, nil
		}

		_, isPermanent := errors.AsType[permanentError](err)
		if isPermanent || try == maxTries || ctx.Err() != nil {
			return nil, fmt.Errorf("cannot download %s: %w", a.URL, err)
		}
		if err := backoff.Sleep(ctx, delay); err != nil {
			return nil, err
		}
		delay *= 2
	}
}

// readOnce reads a small file into memory, without retries. It returns an error if the file has a different size
// than published, unless that size is unknown, or if it has more than maxSmallSize bytes.
func (c assetClient) readOnce(ctx context.Context, a Asset) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	d := c.download(a)
	const offset = 0 // the whole file
	resp, err := d.sendRequest(ctx, offset)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	if _, err := d.checkResponse(resp, offset); err != nil {
		return nil, err
	}

	data, err := io.ReadAll(io.LimitReader(resp.Body, maxSmallSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSmallSize {
		err := fmt.Errorf("the file has more than %d bytes", maxSmallSize)
		return nil, SourceError{Kind: NoReleases, Err: permanentError{err}}
	}
	if a.Size > 0 && int64(len(data)) != a.Size {
		err := fmt.Errorf("the file has %d bytes, not %d as published", len(data), a.Size)
		return nil, SourceError{Kind: NoReleases, Err: err}
	}

	return data, nil
}

// Fetch downloads a file to the path, and verifies its sum.
func (c assetClient) Fetch(ctx context.Context, a Asset, path string, sum [sha256.Size]byte) error {
	d := c.download(a)
	d.Path = path
	d.SHA256 = sum
	return d.Get(ctx)
}

// Close closes idle connections.
func (c assetClient) Close() { c.client.CloseIdleConnections() }

// download returns the download of the asset, without a destination and a sum.
func (c assetClient) download(a Asset) Download {
	header := http.Header{"Accept": {"application/octet-stream"}}
	maps.Copy(header, c.header)
	return Download{Client: c.client, URL: a.URL, Header: header, Size: a.Size}
}
