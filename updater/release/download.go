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

// Get downloads the file. It continues an interrupted download, even one of an earlier process. It moves only
// the complete, verified file to Path, and never an error page or a part of the file.
func (d Download) Get(ctx context.Context) error {
	doing := activity.Begin(ctx, "downloads %s", d.URL)
	defer doing.End()
	if err := d.retryUntilDone(ctx); err != nil {
		return fmt.Errorf("cannot download %s: %w", d.URL, err)
	}

	return nil
}

// retryUntilDone downloads and verifies the file, unless it is already there. It retries a failed download,
// unless the error is permanent or ctx has ended, until maxTries consecutive tries have brought no new bytes. It
// retries a failed verification once, if an earlier call has left a partial file.
func (d Download) retryUntilDone(ctx context.Context) error {
	if d.isThere() {
		// The process that renamed the file may have been killed before it synced the directory.
		return osutil.SyncDir(filepath.Dir(d.Path))
	}

	delay := minRetryDelay
	largest := d.partialSize() // the largest size so far, since a server can start again from byte 0 many times
	isResumed := largest > 0   // an earlier call has left a partial file

	for try := 1; ; try++ {
		err := d.tryOnce(ctx)
		if err == nil {
			err = d.verifyAndRename()
			if err == nil {
				return nil
			}
			if !isResumed {
				return err
			}
			// After a wrong sum, verifyAndRename has removed the file. The first bytes may have come from a
			// different file, so start again once.
			isResumed = false
			largest = 0
			continue
		}

		if _, isPermanent := errors.AsType[permanentError](err); isPermanent || ctx.Err() != nil {
			return err
		}

		if size := d.partialSize(); size > largest {
			// New bytes have arrived, so the server works. Count the tries from the start, and resume soon.
			largest = size
			try = 0
			delay = resumeDelay
		}
		if try >= maxTries {
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

// partialSize returns the size of the partial file, or 0 if there is none or its size cannot be read.
func (d Download) partialSize() int64 {
	info, err := os.Stat(d.Path + partialSuffix)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tryOnce downloads the missing part of the file, and appends it to the partial file. If the partial
// file already has the known size, tryOnce only syncs it. It cancels the request if the body stalls for
// silenceTimeout.
func (d Download) tryOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	offset := d.partialSize()
	isComplete := d.Size > 0 && offset == d.Size
	if isComplete {
		return d.syncPartial()
	}

	resp, err := d.sendRequest(ctx, offset)
	if err != nil {
		return err
	}

	endSilence := func() { cancel(fmt.Errorf("the server was silent for %s", silenceTimeout)) }
	resp.Body = watchedBody{resp.Body, time.AfterFunc(silenceTimeout, endSilence)}
	// This defer comes after the assignment, so that it also stops the timer.
	defer resp.Body.Close()
	if offset, err = d.checkResponse(resp, offset); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Path+partialSuffix, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return permanentError{err}
	}

	err = d.appendBody(f, resp, offset)
	err = errors.Join(err, f.Close())
	// If ctx has ended, its cause is the reason for the error, for example the silence of the server.
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}

	return err
}

// sendRequest requests the file, starting at byte from. It returns the response whatever its status is.
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

// checkResponse returns the offset in the file at which the body begins: the requested offset, or 0 if the
// server sends the whole file. It returns an error if the body is not a part of the file. If the server resumes
// at a different offset, or cannot resume, checkResponse also removes the partial file, if there is one.
func (d Download) checkResponse(resp *http.Response, offset int64) (int64, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		offset = 0
	case code == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", offset)):
		// The server continues at the end of the partial file.
	case code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		err := errors.New("the server resumed at a different offset than requested")
		if offset > 0 {
			err = errors.Join(err, os.Remove(d.Path+partialSuffix))
		}
		return 0, err
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		// A retry can help.
		return 0, answerError(resp)
	default:
		failed := answerError(resp)
		failed.Err = permanentError{failed.Err}
		return 0, failed
	}

	total := offset + resp.ContentLength
	areSizesKnown := d.Size > 0 && resp.ContentLength >= 0
	if areSizesKnown && total != d.Size {
		err := fmt.Errorf("the file has %d bytes, not %d as published", total, d.Size)
		return 0, SourceError{Kind: NoReleases, Err: permanentError{err}}
	}

	return offset, nil
}

// appendBody appends the body of a response to the first offset bytes of the file. It keeps the bytes of an
// incomplete body, so that the next try continues there. If the body is too long, it removes the file.
func (d Download) appendBody(f *os.File, resp *http.Response, offset int64) error {
	if err := f.Truncate(offset); err != nil {
		return permanentError{err}
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return permanentError{err}
	}

	maxSize := maxUnknownSize
	if d.Size > 0 {
		maxSize = d.Size
	}

	// One byte more than the maximum shows that the body is too long.
	n, err := io.Copy(f, io.LimitReader(resp.Body, maxSize-offset+1))
	size := offset + n
	switch {
	case err != nil:
		// The bytes before the error are kept.
	case size > maxSize:
		err := fmt.Errorf("the download continues after %d bytes", maxSize)
		return permanentError{errors.Join(err, os.Remove(f.Name()))}
	case d.Size > 0 && size < d.Size:
		err = fmt.Errorf("the download ends after %d of %d bytes", size, d.Size)
	}

	// A partial file is kept, so it must also be synced.
	syncErr := d.syncOrRemove(f)
	return errors.Join(err, syncErr)
}

// syncPartial syncs the partial file once it has all bytes, since the process that wrote them may have been
// killed before the sync. If the sync fails, it removes the file.
func (d Download) syncPartial() error {
	f, err := os.Open(d.Path + partialSuffix)
	if err != nil {
		return permanentError{err}
	}
	defer f.Close()
	return d.syncOrRemove(f)
}

// syncOrRemove syncs a file, and removes it if the sync fails. After a failed sync, data may be lost even if
// the file is still readable and another sync succeeds.
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

// Read resets the timer, and reads from the body.
func (w watchedBody) Read(p []byte) (int, error) {
	w.timer.Reset(silenceTimeout)
	return w.ReadCloser.Read(p)
}

// Close stops the timer, and closes the body.
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

// wantedSum returns the published sum in hexadecimal.
func (d Download) wantedSum() string { return hex.EncodeToString(d.SHA256[:]) }
