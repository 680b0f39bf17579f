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

// Download is a file to download.
type Download struct {
	Client *http.Client
	URL    string
	Header http.Header // beside what every request has
	Path   string      // where to put it; what is there already is replaced
	Size   int64       // bytes; 0: unknown
	// SHA256 is the sum of the file. One at Path that has it already is not downloaded again.
	SHA256 [sha256.Size]byte
}

const (
	maxTries       = 6                     // in a row that bring nothing
	maxUnknownSize = int64(8e9)            // of a file whose size is unknown
	partialSuffix  = ".part"               // what is added to the name of a file that is not whole
	minRetryDelay  = time.Second           // between two tries, doubled each time
	resumeDelay    = 50 * time.Millisecond // after one that brought something
)

// permanentError is a failure that no retry helps.
type permanentError struct{ error }

// Get downloads the file. It continues an interrupted download, also of an earlier Get. Path never holds
// any file except the published one, such as an error page or half a file.
func (d Download) Get(ctx context.Context) error {
	doing := activity.Begin(ctx, "downloads %s", d.URL)
	defer doing.End()
	if err := d.retryUntilDone(ctx); err != nil {
		return fmt.Errorf("cannot download %s: %w", d.URL, err)
	}

	return nil
}

// retryUntilDone tries the download until the file is complete and verified. It counts tries from zero
// whenever more of the file has come than ever before.
func (d Download) retryUntilDone(ctx context.Context) error {
	if d.isThere() {
		// The process that put it there may have been killed before it synced the folder.
		return osutil.SyncDir(filepath.Dir(d.Path))
	}

	gap := minRetryDelay
	resumed := d.partialSize() > 0 // the download goes on with bytes of an earlier call
	most := d.partialSize()        // the largest size so far: a file can end early, and begin anew, many times

	for n := 1; ; n++ {
		err := d.tryOnce(ctx)
		if err == nil {
			err = d.verifyAndRename()
			if err == nil || !resumed {
				return err
			}
			resumed = false // the earlier bytes may be of another file: all of it is read once more
			most = 0
			continue
		}

		if _, final := errors.AsType[permanentError](err); final || ctx.Err() != nil {
			return err
		}

		if size := d.partialSize(); size > most {
			most = size
			n = 0
			gap = resumeDelay
		}
		if n >= maxTries {
			return err
		}
		if err := backoff.Sleep(ctx, gap); err != nil {
			return err
		}
		gap = max(2*gap, minRetryDelay)
	}
}

// isThere reports whether the file stands at its path.
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

// tryOnce downloads the missing rest of the file. It gives up when the server is silent for silenceTimeout.
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

// sendRequest asks for the file from that byte on.
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

// checkResponse returns the offset at which the body begins, or why it is not the file's.
func (d Download) checkResponse(resp *http.Response, have int64) (int64, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		have = 0
	case code == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		// The server goes on where the file ends.
	case code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		return 0, errors.Join(errors.New("the server went on at another place than it was asked to"),
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
		other := fmt.Errorf("it has %d bytes, not %d as published", all, d.Size)
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
	if err == nil && have+n > most {
		return permanentError{errors.Join(fmt.Errorf("it goes on after %d bytes", most), os.Remove(f.Name()))}
	}

	if err == nil && d.Size > 0 && have+n < d.Size {
		err = fmt.Errorf("it ends after %d of %d bytes", have+n, d.Size)
	}

	// A part of the file is kept, since the next attempt continues there.
	synced := d.syncOrRemove(f)
	return errors.Join(err, synced)
}

// syncPartial syncs a file that is complete. The process that wrote it may have been killed before it did.
func (d Download) syncPartial() error {
	f, err := os.Open(d.Path + partialSuffix)
	if err != nil {
		return permanentError{err}
	}
	defer f.Close()
	return d.syncOrRemove(f)
}

// syncOrRemove syncs a file, and removes it if that fails. The failed sync has lost data, although the file
// can still be read, and the next sync would not tell.
func (d Download) syncOrRemove(f *os.File) error {
	err := f.Sync()
	if err == nil {
		return nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// watchedBody cancels a request whose answer comes to a halt.
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

// verifyAndRename compares the sum of the downloaded file with the published one, and gives the file its
// name.
func (d Download) verifyAndRename() error {
	part := d.Path + partialSuffix
	sum, _, err := osutil.DigestFile(part)
	if err != nil {
		return err
	}
	if sum != d.wantedSum() {
		return errors.Join(fmt.Errorf("its sum is %s, not %s as published", sum, d.wantedSum()), os.Remove(part))
	}
	if err := os.Rename(part, d.Path); err != nil { // written and synced above
		return err
	}

	return osutil.SyncDir(filepath.Dir(d.Path))
}

func (d Download) wantedSum() string { return hex.EncodeToString(d.SHA256[:]) }
