package lyingdisk

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const pageSize = 4096

// disk knows the data that a power cut would lose. It keeps the old content of everything that has changed since
// its last sync.
type disk struct {
	mu     sync.Mutex
	files  map[uint64]*changed         // by inode
	names  map[uint64]map[string]entry // by inode of the directory: the previous entry of each changed name
	fails  map[string]bool             // the kinds of calls that fail: "read", "write", "sync"
	counts map[string]int              // how often each has failed
	dice   *rand.Rand

	next  string // the kind of the next call that fails
	left  int    // the number of such calls up to the failure, including the one that fails; 0 for no failure
	stays bool   // whether all later calls of that kind also fail
	kills bool   // whether the disk kills the caller instead of returning an error
}

// changed contains the parts of a file's last synced content that differ from the current content.
type changed struct {
	size  int64
	pages map[int64][]byte // by number; the last page of the file may be shorter
	lost  map[int64][]byte // pages for which a sync has failed
}

// entry is the previous entry with a name. If Inode is 0, there was none.
type entry struct {
	inode uint64
	link  string // of a symlink
}

func newDisk(dice *rand.Rand) *disk {
	return &disk{
		files: map[uint64]*changed{}, names: map[uint64]map[string]entry{}, fails: map[string]bool{}, counts: map[string]int{}, dice: dice,
	}
}

func (d *disk) survives(chance float64) bool { return d.dice.Float64() < chance }

// failedSync returns EIO if this sync fails. With KillAtSync it kills the caller and syncs nothing. The
// data is then not lost, unlike after a failed sync.
func (d *disk) failedSync(ctx context.Context) (errno syscall.Errno, killed bool) {
	errno = d.failure("sync")
	if caller, ok := fuse.FromContext(ctx); ok && errno != 0 && d.kills {
		return errno, syscall.Kill(int(caller.Pid), syscall.SIGKILL) == nil
	}
	return errno, false
}

// failure returns EIO if that kind of call fails now.
func (d *disk) failure(what string) syscall.Errno {
	if d.left > 0 && d.next == what {
		d.left--
		if d.left > 0 {
			return 0
		}
		d.fails[what] = d.stays
	} else if !d.fails[what] {
		return 0
	}
	d.counts[what]++
	return syscall.EIO
}

// noteNew records a file that did not exist at the last sync.
func (d *disk) noteNew(inode uint64) {
	d.files[inode] = &changed{pages: map[int64][]byte{}, lost: map[int64][]byte{}}
}

// noteWrite keeps the pages of a file that are about to change: length bytes from the offset, or up to
// the end if length is negative.
func (d *disk) noteWrite(inode uint64, path string, offset, length int64) syscall.Errno {
	f, err := os.Open(path)
	if err != nil {
		return syscall.EIO
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return syscall.EIO
	}

	c := d.files[inode]
	if c == nil {
		c = &changed{size: info.Size(), pages: map[int64][]byte{}, lost: map[int64][]byte{}}
		d.files[inode] = c
	}
	end := offset + length
	if length < 0 {
		end = info.Size()
	}
	for page := offset / pageSize; page*pageSize < end; page++ {
		if err := c.keep(f, page); err != nil {
			return syscall.EIO
		}
	}
	return 0
}

// keep keeps a page as it was last synced, unless it is kept already.
func (c *changed) keep(f *os.File, page int64) error {
	// A lost page that is written again may survive the next cut.
	if old, ok := c.lost[page]; ok {
		c.pages[page] = old
		delete(c.lost, page)
		return nil
	}
	if _, ok := c.pages[page]; ok || page*pageSize >= c.size {
		return nil
	}

	data := make([]byte, min(pageSize, c.size-page*pageSize))
	n, err := f.ReadAt(data, page*pageSize)
	if err != nil && err != io.EOF {
		return err
	}
	c.pages[page] = data[:n]
	return nil
}

// syncFile makes a file's contents durable. If the sync fails, the contents that were not synced are lost.
func (d *disk) syncFile(ctx context.Context, inode uint64, size int64) syscall.Errno {
	errno, killed := d.failedSync(ctx)
	c := d.files[inode]
	switch {
	case c == nil, killed:
	case errno != 0:
		for page := int64(0); page*pageSize < max(size, c.size); page++ {
			if old, ok := c.pages[page]; ok || page*pageSize >= c.size {
				c.lost[page] = old
			}
		}
		clear(c.pages)
	case len(c.lost) == 0:
		delete(d.files, inode)
	default:
		clear(c.pages)
		c.size = size
	}
	return errno
}

// noteName keeps the current entry of a name, since the name is about to change.
func (d *disk) noteName(directory uint64, name string, was entry) {
	names := d.names[directory]
	if names == nil {
		names = map[string]entry{}
		d.names[directory] = names
	}
	if _, ok := names[name]; !ok {
		names[name] = was
	}
}

// syncNames makes the names in a directory durable.
func (d *disk) syncNames(ctx context.Context, directory uint64) syscall.Errno {
	if errno, _ := d.failedSync(ctx); errno != 0 {
		return errno
	}
	delete(d.names, directory)
	return 0
}

// contents returns a file's contents after a power cut. For each page that was not synced, and for the size,
// it uses the new value with the probability survive, and otherwise the old one.
func (d *disk) contents(inode uint64, path string, survive float64) ([]byte, error) {
	data, err := os.ReadFile(path)
	c := d.files[inode]
	if err != nil || c == nil {
		return data, err
	}

	size := c.size
	if d.survives(survive) && len(c.lost) == 0 {
		size = int64(len(data))
	}
	left := make([]byte, size)
	copy(left, data)
	for _, page := range slices.Sorted(maps.Keys(c.pages)) {
		if !d.survives(survive) {
			restore(left, page, c.pages[page])
		}
	}
	for page, old := range c.lost {
		restore(left, page, old)
	}
	// Pages between the synced end and the surviving size may contain the new data or zeroes.
	for page := (c.size + pageSize - 1) / pageSize; page*pageSize < size; page++ {
		if !d.survives(survive) {
			restore(left, page, nil)
		}
	}
	return left, nil
}

func restore(data []byte, page int64, old []byte) {
	at := page * pageSize
	if at >= int64(len(data)) {
		return
	}
	to := data[at:min(at+pageSize, int64(len(data)))]
	clear(to)
	copy(to, old)
}
