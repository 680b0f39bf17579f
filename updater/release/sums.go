package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// SumsFile and SignatureFile are the assets that authenticate the others.
const (
	SumsFile      = "SHA256SUMS"
	SignatureFile = "SHA256SUMS.minisig"
)

// Sums are SHA-256 sums by file name.
type Sums map[string][sha256.Size]byte

// ParseSums reads what sha256sum prints: lines of 64 hex digits, a blank, a blank
// or an asterisk, and a name. Whatever is not that, an error page say, is refused.
func ParseSums(data []byte) (Sums, error) {
	sums := Sums{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "" {
			continue
		}
		if err := sums.addLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("cannot read %s, line %d: %w", SumsFile, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", SumsFile, err)
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("cannot read %s: it is empty", SumsFile)
	}
	return sums, nil
}

func (s Sums) addLine(line string) error {
	const digits = 2 * sha256.Size
	if len(line) < digits+3 || line[digits] != ' ' || !strings.ContainsRune(" *", rune(line[digits+1])) {
		return fmt.Errorf("it is not a sum and a name")
	}
	raw, err := hex.DecodeString(line[:digits])
	if err != nil {
		return fmt.Errorf("the sum is not hexadecimal")
	}
	name, sum := line[digits+2:], [sha256.Size]byte(raw)
	if before, ok := s[name]; ok && before != sum {
		return fmt.Errorf("%q has two different sums", name)
	}
	s[name] = sum
	return nil
}

// Check compares a file's sum with the one that was published. A file without one is
// refused.
func (s Sums) Check(name string, got [sha256.Size]byte) error {
	want, ok := s[name]
	if !ok {
		return fmt.Errorf("cannot trust %q: %s does not list it", name, SumsFile)
	}
	if got != want {
		return fmt.Errorf("cannot trust %q: its sum is %x, not %x as published", name, got, want)
	}
	return nil
}
