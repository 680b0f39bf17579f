package lyingdisk

import (
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
)

const pageSize = 4096

// disk knows what would be lost if the power went now. It keeps, of all that was changed since it was
// last synced, what was there before.
type disk struct {
	mu     sync.Mutex
	files  map[uint64]*changed         // by inode
	names  map[uint64]map[string]entry // by inode of the directory: what each changed name was
	fails  map[string]bool             // "read", "write", "sync": they fail
	counts map[string]int              // how often each did
}

// changed is what a file was when it was last synced, as far as it differs now.
type changed struct {
	size  int64
	pages map[int64][]byte // by number; shorter at the end of the file
	lost  map[int64][]byte // of these a sync has failed
}

// entry is what stood under a name. Inode 0 is nothing.
type entry struct {
	inode uint64
	link  string // of a symlink
}

func newDisk() *disk {
	return &disk{files: map[uint64]*changed{}, names: map[uint64]map[string]entry{}, fails: map[string]bool{}, counts: map[string]int{}}
}

// failure returns EIO if what is named fails now.
func (d *disk) failure(what string) syscall.Errno {
	if !d.fails[what] {
		return 0
	}
	d.counts[what]++
	return syscall.EIO
}

// noteNew notes a file that was not there when it was last synced.
func (d *disk) noteNew(inode uint64) {
	d.files[inode] = &changed{pages: map[int64][]byte{}, lost: map[int64][]byte{}}
}

// noteWrite keeps the pages of a file that are about to change: from the offset on, so many bytes, or
// with a length below 0 all to the end.
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

// keep keeps a page as it was synced, unless it is kept already.
func (c *changed) keep(f *os.File, page int64) error {
	if old, ok := c.lost[page]; ok { // it is written again, and has a new chance
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

// syncFile makes the contents last, or loses them.
func (d *disk) syncFile(inode uint64, size int64) syscall.Errno {
	errno := d.failure("sync")
	c := d.files[inode]
	switch {
	case c == nil:
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

// noteName keeps what stands under a name that is about to change.
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

// syncNames makes the names in a directory last.
func (d *disk) syncNames(directory uint64) syscall.Errno {
	if errno := d.failure("sync"); errno != 0 {
		return errno
	}
	delete(d.names, directory)
	return 0
}

// contents returns what is left of a file after the power went: of each page that was not synced, and
// of the size, what was or, with the chance to survive, what is.
func (d *disk) contents(inode uint64, path string, survive float64) ([]byte, error) {
	data, err := os.ReadFile(path)
	c := d.files[inode]
	if err != nil || c == nil {
		return data, err
	}

	size := c.size
	if rand.Float64() < survive && len(c.lost) == 0 {
		size = int64(len(data))
	}
	left := make([]byte, size)
	copy(left, data)
	for page, old := range c.pages {
		if rand.Float64() >= survive {
			restore(left, page, old)
		}
	}
	for page, old := range c.lost {
		restore(left, page, old)
	}
	// What was written beyond the end that was synced, and is within the size that survives, may be
	// there or be zeroes.
	for page := (c.size + pageSize - 1) / pageSize; page*pageSize < size; page++ {
		if rand.Float64() >= survive {
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
