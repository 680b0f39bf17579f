package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/state/durable"
	"bijou/updater/activity"
)

// Download is one file to get.
type Download struct {
	Client *http.Client
	URL    string
	Header http.Header // beside what every request has
	Path   string      // where to put it; what is there already is replaced
	Size   int64       // bytes; 0: unknown
	// SHA256 is what the file must be. A file that is that already is not got again.
	SHA256 [sha256.Size]byte
}

const (
	tries    = 6                     // in a row that bring nothing
	maxBytes = int64(8e9)            // of a file whose size is unknown
	partial  = ".part"               // what is added to the name of a file that is not whole
	firstGap = time.Second           // between two tries, doubled each time
	smallGap = 50 * time.Millisecond // after one that brought something
)

// refused is an answer that asking again would not change.
type refused struct{ error }

// Get gets the file. What was cut off is gone on with, also by a later Get;
// whatever is not the file that was published (an error page, half a file)
// never stands at its path.
func (d Download) Get(ctx context.Context) error {
	doing := activity.Begin(ctx, "downloads %s", d.URL)
	defer doing.End()
	if err := d.get(ctx); err != nil {
		return fmt.Errorf("cannot download %s: %w", d.URL, err)
	}
	return nil
}

func (d Download) get(ctx context.Context) error {
	if sum, err := sumOf(d.Path); err == nil && sum == d.SHA256 {
		return nil
	}
	gap, resumed := firstGap, d.have() > 0
	for n := 1; ; n++ {
		before := d.have()
		err := d.try(ctx)
		if err == nil {
			if err = d.finish(); err == nil || !resumed {
				return err
			}
			resumed = false // what lay there may be of another file: once more, all of it
			continue
		}
		if _, final := errors.AsType[refused](err); final || ctx.Err() != nil {
			return err
		}
		if d.have() > before {
			n, gap = 0, smallGap
		}
		if n >= tries {
			return err
		}
		if err := pause(ctx, gap); err != nil {
			return err
		}
		gap = max(2*gap, firstGap)
	}
}

// have is how many bytes are there already.
func (d Download) have() int64 {
	info, err := os.Stat(d.Path + partial)
	if err != nil {
		return 0
	}
	return info.Size()
}

// try asks for what is missing, and adds it. A server that falls silent is given up.
func (d Download) try(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	have := d.have()
	if d.Size > 0 && have == d.Size {
		return nil
	}
	resp, err := d.ask(ctx, have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	resp.Body = watchOver(resp.Body, cancel)
	if have, err = d.begins(resp, have); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Path+partial, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return refused{err}
	}
	err = errors.Join(d.write(f, resp, have), f.Close())
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// ask asks for the file from that byte on.
func (d Download) ask(ctx context.Context, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, refused{err}
	}
	for name, values := range d.Header {
		req.Header[name] = values
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	return d.Client.Do(req)
}

// begins tells with which byte the answer begins, or why it is not the file.
func (d Download) begins(resp *http.Response, have int64) (int64, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		have = 0
	case code == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		return 0, errors.Join(errors.New("the server went on at another place than it was asked to"), os.Remove(d.Path+partial))
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return 0, fmt.Errorf("the server answers %s", resp.Status)
	default:
		return 0, refused{fmt.Errorf("the server answers %s", resp.Status)}
	}
	if all := have + resp.ContentLength; d.Size > 0 && resp.ContentLength >= 0 && all != d.Size {
		return 0, refused{fmt.Errorf("it has %d bytes, not %d as published", all, d.Size)}
	}
	return have, nil
}

// write adds the answer behind what is there.
func (d Download) write(f *os.File, resp *http.Response, have int64) error {
	if err := f.Truncate(have); err != nil {
		return refused{err}
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return refused{err}
	}
	most := maxBytes
	if d.Size > 0 {
		most = d.Size
	}
	n, err := io.Copy(f, io.LimitReader(resp.Body, most-have+1))
	switch {
	case err != nil:
		return errors.Join(err, f.Sync())
	case have+n > most:
		return refused{errors.Join(fmt.Errorf("it goes on after %d bytes", most), os.Remove(f.Name()))}
	case d.Size > 0 && have+n < d.Size:
		return errors.Join(fmt.Errorf("it ends after %d of %d bytes", have+n, d.Size), f.Sync())
	}
	return f.Sync()
}

// watched cancels a request whose answer comes to a halt.
type watched struct {
	io.ReadCloser
	timer *time.Timer
}

func watchOver(body io.ReadCloser, cancel context.CancelCauseFunc) watched {
	silent := func() { cancel(fmt.Errorf("the server was silent for %s", silence)) }
	return watched{body, time.AfterFunc(silence, silent)}
}

func (w watched) Read(p []byte) (int, error) {
	w.timer.Reset(silence)
	return w.ReadCloser.Read(p)
}

func (w watched) Close() error {
	w.timer.Stop()
	return w.ReadCloser.Close()
}

// finish checks what was got, and puts it to its place. What is not the file
// that was published is thrown away.
func (d Download) finish() error {
	part := d.Path + partial
	sum, err := sumOf(part)
	if err != nil {
		return err
	}
	if sum != d.SHA256 {
		return errors.Join(fmt.Errorf("its sum is %x, not %x as published", sum, d.SHA256), os.Remove(part))
	}
	if err := os.Rename(part, d.Path); err != nil { // written and synced above
		return err
	}
	return durable.Sync(filepath.Dir(d.Path))
}

// sumOf reads a whole file.
func sumOf(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
