package backupfile

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"bijou/state/osutil"
)

// Reader reads a backup whose sums were checked.
type Reader struct {
	Header
	Sum  string // sum of SHA256SUMS, which identifies the backup
	Keys []Key  // nil for the Reader of ScanFile

	files map[string]*zip.File
}

const (
	maxHeaderBytes = 1 << 20
	maxSumsBytes   = 64 << 20
	// maxKeyBytes limits one key with its value. The largest value that a store accepts has less than half
	// this size.
	maxKeyBytes = 4 << 20
	// maxKeysBytes limits all keys together, since a restoration holds them in memory.
	maxKeysBytes = 1 << 30
)

// Open checks a whole backup, and reads its keys. It returns ErrDamaged if the file is not a complete backup,
// and a different error if the backup has an unknown format or a different kind. The file must not change
// while the Reader is used.
func Open(file io.ReaderAt, size int64, kind string) (*Reader, error) {
	r, err := openChecked(file, size, kind)
	if err != nil {
		return nil, err
	}

	err = r.EachKey(func(k Key) error {
		r.Keys = append(r.Keys, k)
		return nil
	})
	if err != nil {
		return nil, err
	}

	return r, nil
}

// openChecked opens the archive, and checks its header and the sum of each file.
func openChecked(file io.ReaderAt, size int64, kind string) (*Reader, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, damagedError("%w", err)
	}

	r := &Reader{files: map[string]*zip.File{}}
	for _, f := range z.File {
		if _, exists := r.files[f.Name]; exists {
			return nil, damagedError("the file contains %q twice", f.Name)
		}
		r.files[f.Name] = f
	}

	if err := r.readHeader(kind); err != nil {
		return nil, err
	}
	if err := r.checkSums(); err != nil {
		return nil, err
	}

	return r, nil
}

// OpenFile opens the backup at path as Open does, and calls f with its Reader. The Reader can be used until f
// returns.
func OpenFile(path, kind string, f func(*Reader) error) error {
	return withFile(path, func(file *os.File, size int64) error {
		r, err := Open(file, size, kind)
		if err != nil {
			return fmt.Errorf("cannot read the backup %q: %w", path, err)
		}
		return f(r)
	})
}

// ScanFile does what OpenFile does, but does not check the keys, and the Reader's Keys are nil. Instead f can call
// EachKey, which checks the keys and does not hold all of them in memory.
func ScanFile(path, kind string, f func(*Reader) error) error {
	return withFile(path, func(file *os.File, size int64) error {
		r, err := openChecked(file, size, kind)
		if err != nil {
			return fmt.Errorf("cannot read the backup %q: %w", path, err)
		}
		return f(r)
	})
}

// withFile opens the file at path, calls f with the file and its size, and closes the file.
func withFile(path string, f func(file *os.File, size int64) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open the backup: %w", err)
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot open the backup: %w", err)
	}

	return f(file, info.Size())
}

// Names returns the names of the backup's files with the prefix, sorted.
func (r *Reader) Names(prefix string) []string {
	names := slices.Sorted(maps.Keys(r.files))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// Has reports whether the backup has the file.
func (r *Reader) Has(name string) bool { return r.files[name] != nil }

// Size returns the size of a file of the backup in bytes, or -1 if there is no such file.
func (r *Reader) Size(name string) int64 {
	if f := r.files[name]; f != nil {
		return int64(f.UncompressedSize64)
	}
	return -1
}

// Open opens a file of the backup. It returns ErrDamaged if the backup does not have the file, or if the file
// cannot be opened.
func (r *Reader) Open(name string) (io.ReadCloser, error) {
	f := r.files[name]
	if f == nil {
		return nil, damagedError("the backup has no file %q", name)
	}
	content, err := f.Open()
	if err != nil {
		return nil, damagedError("%q: %w", name, err)
	}

	return content, nil
}

// ReadAll reads a file of the backup. It returns ErrDamaged if the backup does not have the file, if the file
// cannot be read, or if it has more than limit bytes.
func (r *Reader) ReadAll(name string, limit int64) ([]byte, error) {
	content, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer content.Close()

	data, err := io.ReadAll(io.LimitReader(content, limit+1))
	switch {
	case err != nil:
		return nil, damagedError("%q: %w", name, err)
	case int64(len(data)) > limit:
		return nil, damagedError("%q has more than %d bytes", name, limit)
	}

	return data, nil
}

// readHeader reads the header into r.Header. It returns ErrDamaged if the header is missing or cannot be
// read, and a different error if the backup has an unknown format or a different kind.
func (r *Reader) readHeader(kind string) error {
	data, err := r.ReadAll(headerFile, maxHeaderBytes)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.Header); err != nil {
		return damagedError("%q: %w", headerFile, err)
	}

	switch {
	case r.Format != Format:
		return fmt.Errorf(
			"the backup has format %d, but this bijou supports only format %d: use the bijou that wrote it, %s, or a newer one",
			r.Format, Format, r.Bijou,
		)
	case r.Kind != kind:
		return fmt.Errorf("this is a backup of the kind %q, not %q", r.Kind, kind)
	}

	return nil
}

// checkSums compares the sum of each file with the sum in sumsFile, and sets r.Sum, which identifies the
// backup. It returns ErrDamaged if a file has a different sum or no sum, if sumsFile names a file that the
// backup does not have, or if sumsFile is missing or has an invalid line.
func (r *Reader) checkSums() error {
	data, err := r.ReadAll(sumsFile, maxSumsBytes)
	if err != nil {
		return err
	}

	r.Sum = osutil.Digest(data)
	wantSums := map[string]string{} // by the file's name
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		isKnownName := name == headerFile || fileNamePattern().MatchString(name)
		isRepeated := wantSums[name] != ""
		if !ok || !isKnownName || isRepeated {
			return damagedError("%s has the invalid line %q", sumsFile, line)
		}
		wantSums[name] = sum
	}

	filesWithSums := len(r.files) - 1 // all but sumsFile itself
	if len(wantSums) != filesWithSums {
		return damagedError("the backup has %d files, but sums for %d", filesWithSums, len(wantSums))
	}

	for _, name := range slices.Sorted(maps.Keys(wantSums)) {
		if err := r.checkSum(name, wantSums[name]); err != nil {
			return err
		}
	}

	return nil
}

// checkSum returns ErrDamaged if the sum of a file differs from want. The name of a blob's file also contains
// the blob's sum, which must be the same.
func (r *Reader) checkSum(name, want string) error {
	content, err := r.Open(name)
	if err != nil {
		return err
	}
	defer content.Close()

	got, _, err := osutil.DigestReader(content)
	if err != nil {
		return damagedError("%q: %w", name, err)
	}
	sumInName, isBlob := strings.CutPrefix(name, BlobName("")) // the name of a blob's file ends with the sum
	if got != want || isBlob && got != sumInName {
		return damagedError("%q has the sum %s, not %s", name, got, want)
	}

	return nil
}

// EachKey reads the keys one by one, and calls f for each. If f returns an error, EachKey stops and returns
// that error. EachKey returns ErrDamaged if the keys cannot be read, if keys are out of order or occur twice,
// if a key is empty or has no value, if their number is not the one in the header, or if a key or all keys
// together are too large. It can find this after calls of f.
func (r *Reader) EachKey(f func(Key) error) error {
	content, err := r.Open(keysFile)
	if err != nil {
		return err
	}
	defer content.Close()

	bounded := &keyReader{Reader: bufio.NewReader(content)}
	decoder := json.NewDecoder(bounded)
	count := 0
	previous := ""

	for {
		var k Key
		err := decoder.Decode(&k)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damagedError("%s: after the key %q: %w", keysFile, previous, err)
		}

		isOutOfOrder := count > 0 && k.Key <= previous
		if k.Key == "" || k.Value == nil || isOutOfOrder {
			return damagedError("%s has the key %q out of order", keysFile, k.Key)
		}
		if count == r.Header.Keys {
			return damagedError("the backup has more than %d keys", count)
		}
		if err := f(k); err != nil {
			return err
		}

		count++
		previous = k.Key
		// The size of the next key counts from here.
		bounded.decoded = decoder.InputOffset()
	}

	if count != r.Header.Keys {
		return damagedError("the backup has %d keys, not %d", count, r.Header.Keys)
	}

	return nil
}

// keyReader limits how far a decoder reads beyond the last decoded key, so that an endless key does not fill
// the memory.
type keyReader struct {
	io.Reader
	read    int64 // bytes read
	decoded int64 // bytes up to the end of the last decoded key
}

// Read reads the keys. It returns an error if one key, or all keys, have too many bytes.
func (r *keyReader) Read(p []byte) (int, error) {
	if r.read-r.decoded > maxKeyBytes {
		return 0, fmt.Errorf("a key has more than %d bytes", maxKeyBytes)
	}
	if r.read > maxKeysBytes {
		return 0, fmt.Errorf("the keys have more than %d bytes", maxKeysBytes)
	}
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	return n, err
}
