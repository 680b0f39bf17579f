package charmsource

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bijou/state/osutil"
)

const (
	silenceTimeout = 30 * time.Second // how long a download can wait for new bytes
	maxRedirects   = 5
	partSuffix     = ".part" // of the name of an incomplete download
)

// Fetch implements [Source]. It downloads to path with the suffix ".part", and renames that file once it is complete.
// If the download fails, Fetch removes that file. It returns an error if another download is writing the same file.
func (c *Charmhub) Fetch(ctx context.Context, f File, path string) (sha384 string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot download %s: %w", f.What, err)
		}
	}()

	if err := c.checkFile(f); err != nil {
		return "", err
	}

	// The lock keeps a second download from writing the same file.
	// In a directory that others can write, the file could already be a symlink, which O_NOFOLLOW refuses.
	part, err := osutil.TryLockFile(path+partSuffix, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW)
	if errors.Is(err, osutil.ErrLocked) {
		return "", fmt.Errorf("another download is writing %s", path)
	}
	if err != nil {
		return "", err
	}
	defer part.Close()

	sha384, err = c.downloadWhole(ctx, f, part, path)
	if err != nil {
		return "", errors.Join(err, os.Remove(part.Name()))
	}

	return sha384, osutil.SyncDir(filepath.Dir(path))
}

// downloadWhole downloads f to part, with retries, and renames part to path. All users can read the file at path.
// downloadWhole returns the file's SHA-384 sum in hex.
func (c *Charmhub) downloadWhole(ctx context.Context, f File, part *os.File, path string) (sha384 string, _ error) {
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		sha384, err = c.download(ctx, f, part)
		return err
	})
	if err != nil {
		return "", err
	}

	if err := part.Chmod(0o644); err != nil {
		return "", err
	}
	if err := part.Sync(); err != nil {
		return "", err
	}
	return sha384, os.Rename(part.Name(), path)
}

// checkFile returns ErrAway if f has no URL that is safe to download from, or no SHA-256 sum to verify the
// download.
func (c *Charmhub) checkFile(f File) error {
	at, err := url.Parse(f.URL)
	switch {
	case f.URL == "" || f.SHA256 == "":
		return awayf("the answer of the store has no URL, or no SHA-256 sum")
	case err != nil || at.Host == "":
		return awayf("the answer of the store has an invalid URL %.200q", f.URL)
	case at.Scheme != c.base.Scheme && at.Scheme != "https":
		return awayf("the store refers to %.200q, which is not encrypted", f.URL)
	case !isNear(at.Hostname(), c.base.Hostname()):
		return awayf("%s refers to a different host, %.200q", c.base.Host, at.Host)
	}
	return nil
}

// isNear reports whether a store on storeHost can have its files on host: on storeHost itself, on a host of
// Charmhub or, if storeHost is localhost or a loopback address, on any of these.
func isNear(host, storeHost string) bool {
	isCharmhub := strings.HasSuffix(host, ".charmhub.io") || strings.HasSuffix(host, ".snapcraft.io") ||
		strings.HasSuffix(host, ".snapcraftcontent.com")
	isLocal := func(name string) bool {
		address := net.ParseIP(name)
		return name == "localhost" || address != nil && address.IsLoopback()
	}
	return strings.EqualFold(host, storeHost) || isCharmhub || isLocal(host) && isLocal(storeHost)
}

// checkRedirect allows a download to be redirected to any host, since Fetch verifies the file. It removes all
// headers of the request except User-Agent.
func (c *Charmhub) checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header = http.Header{"User-Agent": {c.agent}}
	return checkEncrypted("download", req, via)
}

// checkEncrypted returns an error if a request that began with https is redirected to a different scheme, or
// after more than maxRedirects redirects. req is the next request, and via are the earlier ones. kind is a word
// for the request in errors.
func checkEncrypted(kind string, req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("the %s is redirected too often", kind)
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("the %s is redirected to %.200s, which is not encrypted", kind, req.URL.Redacted())
	}
	return nil
}

// download downloads f once, without retries, to the file to, whose old content it removes. It verifies the
// download, and returns the SHA-384 sum in hex. After an error, the file can have content that is not verified.
// download returns an error if no data arrives for silenceTimeout, and a *busyError or cutOffError if a retry
// can help.
func (c *Charmhub) download(ctx context.Context, f File, to *os.File) (sha384 string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", c.agent)

	resp, err := c.files.Do(req)
	if err != nil {
		return "", away(req.URL.Host, silenceTimeout, err)
	}
	defer resp.Body.Close()
	if err := checkBusy(resp); err != nil {
		return "", err
	}

	switch {
	case resp.StatusCode == http.StatusNotFound:
		return "", fmt.Errorf("the file no longer exists: %w", ErrNotFound)
	case resp.StatusCode != http.StatusOK:
		return "", awayf("%s answers %.100q", resp.Request.URL.Host, resp.Status)
	case resp.ContentLength >= 0 && resp.ContentLength != f.Size:
		return "", fmt.Errorf("the file has %d bytes, but the store lists %d", resp.ContentLength, f.Size)
	}

	silenceTimer := time.AfterFunc(silenceTimeout, func() {
		cancel(fmt.Errorf("no data arrived for %s", silenceTimeout))
	})
	defer silenceTimer.Stop()
	body := &reportingReader{from: resp.Body, file: f, silenceTimer: silenceTimer, report: c.progress}

	sha384, err = writeVerified(f, body, to)
	// Only an error of the body is an error of the connection. Other errors are about the file, or its content.
	if err != nil && errors.Is(err, body.err) {
		err = away(resp.Request.URL.Host, silenceTimeout, err)
	}
	// The cause says why reading was cancelled, and err only says that it was.
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return "", cause
	}
	return sha384, err
}

// writeVerified replaces the content of the file to with the body, and returns the body's SHA-384 sum in hex.
// It returns an error if the body does not have the size and the SHA-256 sum of f, or the SHA-384 sum if f has
// one. The error is a cutOffError if the body is too short. writeVerified returns errors of the body and of the
// file unchanged.
func writeVerified(f File, body io.Reader, to *os.File) (string, error) {
	if err := to.Truncate(0); err != nil {
		return "", err
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return "", err
	}

	hash256 := sha256.New()
	hash384 := sha512.New384()
	// One byte more than the size shows that the body is too long.
	n, err := io.Copy(io.MultiWriter(to, hash256, hash384), io.LimitReader(body, f.Size+1))
	if err != nil {
		return "", err
	}

	sum256 := hex.EncodeToString(hash256.Sum(nil))
	sum384 := hex.EncodeToString(hash384.Sum(nil))
	switch {
	case n > f.Size:
		return "", fmt.Errorf("the file has more than %d bytes, the size that the store lists", f.Size)
	case n < f.Size:
		return "", cutOffError{fmt.Errorf("the file ends after %d of %d bytes", n, f.Size)}
	case !strings.EqualFold(sum256, f.SHA256):
		return "", fmt.Errorf("the SHA-256 is %s, but the store lists %s", sum256, f.SHA256)
	case f.SHA384 != "" && !strings.EqualFold(sum384, f.SHA384):
		return "", fmt.Errorf("the SHA-384 is %s, but the store lists %s", sum384, f.SHA384)
	}
	return sum384, nil
}

// reportingReader reads the body of a download. It reports the progress, and resets silenceTimer when bytes
// arrive.
type reportingReader struct {
	from         io.Reader
	file         File
	silenceTimer *time.Timer
	report       func(what string, done, total int)
	done         int64 // the number of bytes read so far
	err          error // the error of the last Read; nil or io.EOF if it did not fail
}

// Read implements [io.Reader].
func (r *reportingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.silenceTimer.Reset(silenceTimeout)
	}
	r.done += int64(n)
	r.err = err

	const unit = 1 << 10
	r.report("KiB of "+r.file.What+" downloaded", int(r.done/unit), int((r.file.Size+unit-1)/unit))
	return n, err
}
