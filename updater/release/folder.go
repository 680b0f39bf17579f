package release

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/updater/record"
)

// folder is a directory with an index, on a web server or on this host. Only the index shows which files the
// directory has.
type folder struct {
	assetClient
	at          *url.URL     // the directory, without credentials
	indexClient *http.Client // fetches and caches the index
}

// newFolder returns the publisher that reads releases from a directory on a web server or on this host.
// client is used only for a web server.
func newFolder(c record.Config, client *http.Client) (*folder, error) {
	at := &url.URL{Scheme: "file", Path: c.ReleaseFolder}
	if filepath.IsAbs(c.ReleaseFolder) {
		client = newFileClient()
	} else {
		var err error
		if at, err = url.Parse(c.ReleaseFolder); err != nil {
			return nil, fmt.Errorf("cannot use release-folder: %w", err)
		}
	}

	// Errors contain the URL, which must not contain the password.
	header := http.Header{}
	if at.User != nil {
		password, _ := at.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(at.User.Username() + ":" + password))
		header.Set("Authorization", "Basic "+credentials)
		at.User = nil
	}

	return &folder{
		assetClient: assetClient{client: client, header: header},
		at:          at,
		indexClient: newETagClient(client),
	}, nil
}

// Releases lists the releases of the index.
func (f *folder) Releases(ctx context.Context) ([]Release, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	x, err := f.readIndex(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the releases of %s: %w", f.name(), err)
	}

	var all []Release
	for _, r := range x.Releases {
		one := Release{Tag: r.Tag, PreRelease: r.PreRelease}
		for _, file := range r.Files {
			at := f.at.JoinPath(url.PathEscape(r.Tag), url.PathEscape(file.Name))
			one.Assets = append(one.Assets, Asset{Name: file.Name, URL: at.String(), Size: file.Size})
		}
		all = append(all, one)
	}

	return all, nil
}

// name returns the directory in the form that the configuration has, without a password.
func (f *folder) name() string {
	if f.at.Scheme == "file" {
		return f.at.Path
	}
	return f.at.String()
}

// readIndex reads the index. If the server answers that the index has not changed since the last call, the
// index comes from the cache of indexClient.
func (f *folder) readIndex(ctx context.Context) (x index, err error) {
	d := f.download(Asset{Name: IndexFile, URL: f.at.JoinPath(IndexFile).String()})
	d.Client = f.indexClient
	d.Header.Set("Accept", "application/json")
	// A proxy must not answer from its cache without a request to the server.
	d.Header.Set("Cache-Control", "no-cache")
	resp, err := d.sendRequest(ctx, 0)
	if err != nil {
		return x, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		failed := answerError(resp)
		failed.Err = f.explainAnswer(failed)
		return x, failed
	}

	data, err := io.ReadAll(io.LimitReader(resp.Body, maxCachedSize+1))
	if err != nil {
		return x, SourceError{Kind: Unreachable, Err: err}
	}
	if len(data) > maxCachedSize {
		err := fmt.Errorf("the file %s has more than %d bytes", IndexFile, maxCachedSize)
		return x, SourceError{Kind: NoReleases, Err: err}
	}

	return parseIndex(data)
}

// explainAnswer returns the error for an answer to the request for the index. It adds advice for the kinds of
// failures that operators can fix.
func (f *folder) explainAnswer(e SourceError) error {
	isFile := f.at.Scheme == "file"
	switch {
	case isFile && e.Kind == Missing:
		return fmt.Errorf("there is no %s; to write one: neco release -o", filepath.Join(f.at.Path, IndexFile))
	case isFile && e.Kind == Forbidden:
		return fmt.Errorf("no permission to read %s", filepath.Join(f.at.Path, IndexFile))
	case e.Kind == Unauthorized:
		return fmt.Errorf("%w; to give a user and a password, set release-folder to https://USER:PASSWORD@HOST/", e.Err)
	case e.Kind == Missing:
		return fmt.Errorf("%w for %s, which must be in that directory", e.Err, IndexFile)
	}

	return e.Err
}

// newFileClient returns a client for files on this host.
func newFileClient() *http.Client {
	return &http.Client{Transport: fileTransport{http.NewFileTransport(http.Dir("/"))}}
}

// fileTransport answers requests with files on this host. It does not wait for a file system that hangs.
type fileTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper]. It returns as soon as the request's context is done, since a read
// from a network file system can hang.
func (t fileTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	// The channel is buffered, so that the goroutine can end even if the answer comes too late.
	answers := make(chan *http.Response, 1)
	go func() {
		// [http.NewFileTransport] reports failures by the status of the response, and returns no errors.
		resp, err := t.next.RoundTrip(r)
		if err != nil {
			resp = nil
		}
		answers <- resp
	}()

	select {
	case resp := <-answers:
		if resp == nil {
			return nil, errors.New("the file cannot be read")
		}

		// [http.NewFileTransport] sets no ContentLength, and does not close the file when the request is
		// cancelled.
		resp.ContentLength = -1
		if size, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil {
			resp.ContentLength = size
		}
		context.AfterFunc(r.Context(), func() { resp.Body.Close() })
		return resp, nil
	case <-r.Context().Done():
		return nil, fmt.Errorf("cannot read %s in time: %w", strings.TrimPrefix(r.URL.String(), "file://"), context.Cause(r.Context()))
	}
}
