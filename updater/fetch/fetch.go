// Package fetch brings files from web servers to the disk: what arrives there is
// whole and what was published, or is not there.
//
// It knows nothing of releases or components; the updater's packages import it.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is one file to fetch.
type File struct {
	URL    string
	Size   int64             // bytes; 0: unknown
	SHA256 [sha256.Size]byte // what it must be
	Header http.Header       // of the request; may be nil
}

// ErrSum says that what came is not what was published.
var ErrSum = errors.New("the sum is wrong")

// tries is how often a transfer that is cut is gone on with.
const tries = 5

// To fetches the file to the path, unless that holds it already. What has come so
// far lies at the path with ".part" behind, and is gone on with: after a cut, and
// after a restart. Only a file whose size and sum are right gets the path's name.
// ErrSum: it is another one.
func To(ctx context.Context, client *http.Client, f File, path string) error {
	if sum, err := Sum(path); err == nil && sum == f.SHA256 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot download %s: %w", f.URL, err)
	}
	t := transfer{client: client, file: f, part: path + ".part"}
	var err error
	for try := range tries {
		if err = t.attempt(ctx); err == nil {
			return t.keep(path)
		}
		if !worthAgain(err) || wait(ctx, try) != nil {
			break
		}
	}
	return fmt.Errorf("cannot download %s: %w", f.URL, err)
}

// refusal is an answer that would be the same again.
type refusal struct{ said string }

func (r refusal) Error() string { return r.said }

// worthAgain tells if another try may succeed: not if the server refused, the
// file is another one, or this machine's disk is at fault.
func worthAgain(err error) bool {
	_, refused := errors.AsType[refusal](err)
	_, disk := errors.AsType[*os.PathError](err)
	return !refused && !disk && !errors.Is(err, ErrSum) && !errors.Is(err, context.Canceled)
}

// wait waits longer each time.
func wait(ctx context.Context, try int) error {
	select {
	case <-time.After(time.Second << try / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transfer is one file on its way.
type transfer struct {
	client *http.Client
	file   File
	part   string
}

// attempt asks for what is missing, and checks the whole.
func (t transfer) attempt(ctx context.Context) error {
	part, err := os.OpenFile(t.part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer part.Close()
	before, err := part.Seek(0, io.SeekEnd)
	have := before
	if err == nil && !t.complete(have) {
		have, err = t.continueAt(ctx, part, have)
	}
	if err == nil {
		err = part.Sync()
	}
	if err != nil {
		return err
	}
	err = t.verify(have)
	if before > 0 && errors.Is(err, ErrSum) {
		return errors.New("what was there of it is of another file")
	}
	return err
}

// complete tells if nothing is missing, as far as one knows.
func (t transfer) complete(have int64) bool { return t.file.Size > 0 && have >= t.file.Size }

// continueAt asks for the rest, and writes it behind what is there. A server that
// cannot give the rest gives all.
func (t transfer) continueAt(ctx context.Context, part *os.File, have int64) (int64, error) {
	resp, err := t.ask(ctx, have)
	if err != nil {
		return have, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		return have, nil // all is here, or it is another file: the sum says which
	case resp.StatusCode == http.StatusOK:
		if have, err = 0, rewind(part); err != nil {
			return 0, err
		}
	case resp.StatusCode != http.StatusPartialContent || !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		return have, answered(resp)
	}
	n, err := io.Copy(part, resp.Body)
	return have + n, err
}

// rewind empties the file.
func rewind(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return f.Truncate(0)
}

// ask sends the request.
func (t transfer) ask(ctx context.Context, have int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.file.URL, nil)
	if err != nil {
		return nil, refusal{err.Error()}
	}
	for k, v := range t.file.Header {
		req.Header[k] = v
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	return t.client.Do(req)
}

// answered is the error of an answer that brings no file: an error page is never
// taken for one. Faults of the moment may go away.
func answered(resp *http.Response) error {
	said := "the server answers " + resp.Status
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return errors.New(said)
	}
	return refusal{said}
}

// verify holds size and sum against what was published. What is wrong is removed,
// so that another try begins anew.
func (t transfer) verify(have int64) error {
	sum, err := Sum(t.part)
	if err != nil {
		return err
	}
	if sum == t.file.SHA256 {
		return nil
	}
	if t.file.Size > have {
		return fmt.Errorf("only %d of %d bytes came", have, t.file.Size)
	}
	_ = os.Remove(t.part)
	return fmt.Errorf("%w: it is %x, not %x", ErrSum, sum, t.file.SHA256)
}

// keep gives the file its name.
func (t transfer) keep(path string) error {
	if err := os.Rename(t.part, path); err != nil {
		return fmt.Errorf("cannot keep the download of %s: %w", t.file.URL, err)
	}
	return nil
}

// Sum is the SHA-256 sum of the file at the path.
func Sum(path string) (sum [sha256.Size]byte, err error) {
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

// ParseSum reads a sum of 64 hexadecimal digits.
func ParseSum(s string) (sum [sha256.Size]byte, err error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != sha256.Size {
		return sum, fmt.Errorf("%q is no SHA-256 sum", s)
	}
	return [sha256.Size]byte(raw), nil
}
