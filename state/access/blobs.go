package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The keys of blobs. A chunk uses much more memory than other values.
const (
	BlobHeads  = "blob-heads/" // BlobHeads begins the key of a blob's head.
	BlobChunks = "blobs/"      // BlobChunks begins the key of a blob's chunk.
)

// touchesBlob allows what headsBlob allows, if the blob is touched at the current time.
func touchesBlob(a *ask) bool { return a.touchesNow() && headsBlob(a) }

// writesChunk allows a machine to write the chunks of a blob that has a head, or gets one in the same commit,
// unless a sweep is removing the blob. Once the blob is complete, the machine can only write the same chunk again.
// Until then, it can replace a chunk. Otherwise a machine that knows a sum could write a wrong chunk first, and
// keep the true writer from completing the blob.
func writesChunk(a *ask) bool {
	head := BlobHeads + a.vars["sum"]
	before, _ := load[blobHeadShape](a.Placement, head)
	after, hasHead := decode[blobHeadShape](a.after(head))
	if !hasHead || !a.works() {
		return false
	}

	// Each chunk has only one key, with the number in four digits or more.
	n, err := strconv.ParseInt(a.vars["chunk"], 10, 64)
	if err != nil || fmt.Sprintf("%04d", n) != a.vars["chunk"] || n >= chunkCount(after.Size) {
		return false
	}

	if before.Complete {
		return a.old != nil && bytes.Equal(a.old, a.new)
	}

	// The head has no time while a sweep removes the blob. A chunk that is written during the removal would
	// stay without a head, and no sweep would find it.
	return !after.Touched.IsZero()
}

// completes reports whether the commit completes only this blob, and the chunks have the blob's sum and size
// after it. Since the check reads all chunks, one small commit must not cause it several times.
func (a *ask) completes(sum string, size int64) bool {
	isOther := func(w Write) bool { return w.Key != BlobHeads+sum && a.completesBlob(w) }
	return !slices.ContainsFunc(a.writes, isOther) && a.hasChunks(sum, size)
}

// completesBlob reports whether the write completes a blob.
func (a *ask) completesBlob(w Write) bool {
	if !strings.HasPrefix(w.Key, BlobHeads) {
		return false
	}
	before, _ := load[blobHead](a.Placement, w.Key)
	after, _ := decode[blobHead](w.Value)
	return after.Complete && !before.Complete
}

// chunkCount returns how many chunks a blob of that size has. Rules compare the number of a chunk with this
// count. An agent chooses the number, so the chunk's offset could overflow.
func chunkCount(size int64) int64 { return (size + huge - 1) / huge }

// hasChunks reports whether the chunks of a blob exist after the commit, and have that sum and size. It holds only
// one chunk of the store in memory.
func (a *ask) hasChunks(sum string, size int64) bool {
	hash := sha256.New()
	read := int64(0)
	for n := range chunkCount(size) {
		chunk := a.afterBy(chunkKey(sum, n), a.pass)
		if chunk == nil {
			return false
		}
		hash.Write(chunk)
		read += int64(len(chunk))
	}

	return read == size && hex.EncodeToString(hash.Sum(nil)) == sum
}

const (
	// maxClockSkew is how far the clock of a machine can differ from that of the gateway.
	maxClockSkew = 10 * time.Minute
	// maxTouchedBack is how far the time of a touch can differ from the gateway's clock if it is earlier than
	// the recorded time. The recorded time may come from another machine, whose clock is ahead.
	maxTouchedBack = 15 * time.Second
)

// touchesNow reports whether the time of a blob's touch is the current time, apart from small differences
// between clocks. It returns true if [Placement.At] was not called. A sweep would never remove a blob with a
// time in the future, and would remove a blob with a time in the past too early.
func (a *ask) touchesNow() bool {
	before, _ := decode[blobHeadShape](a.old)
	after, _ := decode[blobHeadShape](a.new)
	if a.now.IsZero() {
		return true
	}

	// The limit is stricter if the time goes back, since a wrong time could then shorten the blob's life.
	skew := after.Touched.Sub(a.now).Abs()
	goesBack := after.Touched.Before(before.Touched)
	if goesBack {
		return skew <= maxTouchedBack
	}
	return skew <= maxClockSkew
}
