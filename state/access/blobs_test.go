package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// blobOf returns an incomplete blob of n whole chunks, and its sum.
func blobOf(n int) (w world, sum string) {
	chunk := strings.Repeat("x", huge)
	digest := sha256.Sum256([]byte(strings.Repeat(chunk, n)))
	sum = hex.EncodeToString(digest[:])

	w = newWorld()
	w[BlobHeads+sum] = fmt.Sprintf(`{"size":%d}`, n*huge)
	for i := range n {
		w[chunkKey(sum, int64(i))] = chunk
	}
	return w, sum
}

func completed(sum string, size int) Write {
	return Write{Key: BlobHeads + sum, Value: fmt.Appendf(nil, `{"size":%d,"complete":true}`, size)}
}

// TestCompletionKeepsNoChunk checks that the sum of a blob is computed without the whole blob in memory, and
// that the commit still depends on all chunks.
func TestCompletionKeepsNoChunk(t *testing.T) {
	w, sum := blobOf(5)
	p := NewPlacement(w)
	if err := MayCommit(Agent("1"), p, []Write{completed(sum, 5*huge)}); err != nil {
		t.Fatal(err)
	}

	for key, value := range p.values {
		if len(value) == huge {
			t.Errorf("%s is kept", key)
		}
	}
	used, _ := p.Used()
	for i := range 5 {
		if !slices.Contains(used, chunkKey(sum, int64(i))) {
			t.Errorf("the commit does not depend on chunk %d", i)
		}
	}
}

// TestOneCompletionACommit checks that one commit completes at most one blob, no matter how many complete
// blobs it touches.
func TestOneCompletionACommit(t *testing.T) {
	w, sum := blobOf(1)
	touched := Write{Key: BlobHeads + sumDone, Value: []byte(`{"size":3,"complete":true}`)}
	for name, c := range map[string]struct {
		commit  []Write
		allowed bool
	}{
		"one, and one touched": {[]Write{completed(sum, huge), touched}, true},
		"two":                  {[]Write{completed(sum, huge), completed(sumTrue, 3)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := MayCommit(Agent("1"), NewPlacement(w), c.commit)
			if c.allowed && err != nil || !c.allowed && !errors.Is(err, ErrRefused) {
				t.Errorf("got %v, allowed is %v", err, c.allowed)
			}
		})
	}
}
