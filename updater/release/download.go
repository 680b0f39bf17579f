package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/state/backoff"
	"bijou/state/osutil"
	"bijou/updater/activity"
)

// Download describes a file to download.
type Download struct {
	Client *http.Client
	URL    string
	Header http.Header // additional headers of each request
	Path   string      // the destination; an existing file is replaced
	Size   int64       // in bytes; 0 if the size is unknown
	// SHA256 is the sum of the file. If the file at Path already has that sum, nothing is downloaded.
	SHA256 [sha256.Size]byte
}

const (
	// maxTries is the maximum number of consecutive tries without new bytes.
	maxTries = 6
	// maxUnknownSize limits the download of a file whose size is unknown, in bytes.
	maxUnknownSize = int64(8e9)
	// partialSuffix is added to the name of an incomplete file.
	partialSuffix = ".part"
	// minRetryDelay is the delay after the first failed try. It doubles with each further failure.
	minRetryDelay = time.Second
	// resumeDelay is the delay after a try that brought new bytes.
	resumeDelay = 50 * time.Millisecond
)

// permanentError is an error that a retry cannot fix.
type permanentError struct{ error }

// Get downloads the file. It continues an interrupted download, even one of an earlier process. Path only
// holds the complete, verified file, and never an error page or a part of the file.
func (d Download) Get(ctx context.Context) error {
	doing := activity.Begin(ctx, "downloads %s", d.URL)
	defer doing.End()
	if err := d.retryUntilDone(ctx); err != nil {
		return fmt.Errorf("cannot download %s: %w", d.URL, err)
	}

	return nil
}

// retryUntilDone retries until the file is complete and verified. The count of tries starts again whenever
// more of the file has arrived than ever before.
func (d Download) retryUntilDone(ctx context.Context) error {
	if d.isThere() {
		// The process that renamed the file may have been killed before it synced the directory.
		return osutil.SyncDir(filepath.Dir(d.Path))
	}

	delay := minRetryDelay
	// most is the largest size so far, since a download may break off and start again many times.
	most := d.partialSize()
	// resumed is set if an earlier call left a partial file.
	resumed := most > 0

	for n := 1; ; n++ {
		err := d.tryOnce(ctx)
		if err == nil {
			err = d.verifyAndRename()
			if err == nil || !resumed {
				return err
			}
			// After a wrong sum, verifyAndRename has removed the file. The first bytes may have come from a
			// different file, so start again once.
			resumed = false
			most = 0
			continue
		}

		if _, isPermanent := errors.AsType[permanentError](err); isPermanent || ctx.Err() != nil {
			return err
		}

		if size := d.partialSize(); size > most {
			// New bytes have arrived, so the server works. Count the tries from the start.
			most = size
			n = 0
			delay = resumeDelay
		}
		if n >= maxTries {
			return err
		}

		if err := backoff.Sleep(ctx, delay); err != nil {
			return err
		}
		delay = max(2*delay, minRetryDelay)
	}
}

// isThere reports whether the complete file is already at Path.
func (d Download) isThere() bool {
	sum, _, err := osutil.DigestFile(d.Path)
	return err == nil && sum == d.wantedSum()
}

func (d Download) partialSize() int64 {
	info, err := os.Stat(d.Path + partialSuffix)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tryOnce downloads the missing rest of the file. It gives up if the server sends nothing for
// silenceTimeout.
func (d Download) tryOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	have := d.partialSize()
	if d.Size > 0 && have == d.Size {
		return d.syncPartial()
	}

	resp, err := d.sendRequest(ctx, have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	silent := func() { cancel(fmt.Errorf("the server was silent for %s", silenceTimeout)) }
	resp.Body = watchedBody{resp.Body, time.AfterFunc(silenceTimeout, silent)}
	if have, err = d.checkResponse(resp, have); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Path+partialSuffix, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return permanentError{err}
	}

	err = d.appendBody(f, resp, have)
	err = errors.Join(err, f.Close())
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}

	return err
}

// sendRequest requests the file, starting at byte from.
func (d Download) sendRequest(ctx context.Context, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, permanentError{err}
	}

	maps.Copy(req.Header, d.Header)
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}

	resp, err := d.Client.Do(req)
	if err != nil {
		return nil, SourceError{Kind: Unreachable, Err: err}
	}

	return resp, nil
}

// checkResponse returns the offset in the file at which the body begins. It returns an error if the body is
// not a part of the file. If the server did not resume where requested, it also removes the partial file.
func (d Download) checkResponse(resp *http.Response, have int64) (int64, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		have = 0
	case code == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		// The server continues at the end of the partial file.
	case code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		return 0, errors.Join(errors.New("the server resumed at a different offset than requested"),
			os.Remove(d.Path+partialSuffix))
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return 0, answerError(resp)
	default:
		failed := answerError(resp)
		failed.Err = permanentError{failed.Err}
		return 0, failed
	}

	all := have + resp.ContentLength
	if d.Size > 0 && resp.ContentLength >= 0 && all != d.Size {
		other := fmt.Errorf("the file has %d bytes, not %d as published", all, d.Size)
		return 0, SourceError{Kind: NoReleases, Err: permanentError{other}}
	}

	return have, nil
}

// appendBody appends the body of a response to the first have bytes of the file. It keeps the bytes of an
// incomplete body, so that the next try continues there.
func (d Download) appendBody(f *os.File, resp *http.Response, have int64) error {
	if err := f.Truncate(have); err != nil {
		return permanentError{err}
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return permanentError{err}
	}

	most := maxUnknownSize
	if d.Size > 0 {
		most = d.Size
	}
	n, err := io.Copy(f, io.LimitReader(resp.Body, most-have+1))
	switch {
	case err != nil:
		// The bytes before the error are kept.
	case have+n > most:
		return permanentError{errors.Join(fmt.Errorf("the download continues after %d bytes", most), os.Remove(f.Name()))}
	case d.Size > 0 && have+n < d.Size:
		err = fmt.Errorf("the download ends after %d of %d bytes", have+n, d.Size)
	}

	// The partial file is kept, so it must be synced too.
	synced := d.syncOrRemove(f)
	return errors.Join(err, synced)
}

// syncPartial syncs a complete file, since the process that wrote it may have been killed before the sync.
func (d Download) syncPartial() error {
	f, err := os.Open(d.Path + partialSuffix)
	if err != nil {
		return permanentError{err}
	}
	defer f.Close()
	return d.syncOrRemove(f)
}

// syncOrRemove syncs a file, and removes it if the sync fails. A failed sync means that data was lost,
// although the file may still be readable, and another sync would succeed.
func (d Download) syncOrRemove(f *os.File) error {
	err := f.Sync()
	if err == nil {
		return nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// watchedBody resets a timer with each read. The timer cancels the request if the body stalls.
type watchedBody struct {
	io.ReadCloser
	timer *time.Timer
}

func (w watchedBody) Read(p []byte) (int, error) {
	w.timer.Reset(silenceTimeout)
	return w.ReadCloser.Read(p)
}

func (w watchedBody) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}

// verifyAndRename compares the sum of the downloaded file with the published one, and renames the file to
// Path. If the sums differ, it removes the file and returns an error.
func (d Download) verifyAndRename() error {
	part := d.Path + partialSuffix
	sum, _, err := osutil.DigestFile(part)
	if err != nil {
		return err
	}
	if sum != d.wantedSum() {
		return errors.Join(fmt.Errorf("the sum is %s, not %s as published", sum, d.wantedSum()), os.Remove(part))
	}
	// The file itself was synced when it was written.
	if err := os.Rename(part, d.Path); err != nil {
		return err
	}

	return osutil.SyncDir(filepath.Dir(d.Path))
}

func (d Download) wantedSum() string { return hex.EncodeToString(d.SHA256[:]) }
