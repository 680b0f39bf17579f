package lyingdisk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or directory. It passes all calls to a real directory, and reports changes to the disk.
type node struct {
	fs.LoopbackNode
	disk  *disk
	grave string // the directory for files whose last name was removed, by inode
}

// file is an open file.
type file struct {
	*fs.LoopbackFile
	node  *node
	inode uint64
	path  string
}

func (n *node) path(names ...string) string {
	parts := append([]string{n.RootData.Path, n.Path(n.Root())}, names...)
	return filepath.Join(parts...)
}

// stat returns the entry at a path.
func stat(path string) (e entry, isDir bool) {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil {
		return entry{}, false
	}
	e.inode = st.Ino
	if st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		e.link, _ = os.Readlink(path)
	}
	return e, st.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

// changeName records the previous entry of a name. The caller has locked the disk.
func (n *node) changeName(name string) {
	directory, _ := stat(n.path())
	was, _ := stat(n.path(name))
	n.disk.noteName(directory.inode, name, was)
}

// bury keeps a file or directory whose name is removed, so that its inode number is not reused.
func (n *node) bury(name string) syscall.Errno {
	e, isDir := stat(n.path(name))
	if e.inode == 0 {
		return syscall.ENOENT
	}
	grave := filepath.Join(n.grave, strconv.FormatUint(e.inode, 10))
	if isDir {
		return fs.ToErrno(os.Rename(n.path(name), grave))
	}
	err := os.Link(n.path(name), grave)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fs.ToErrno(err)
	}
	return 0
}

// Create creates a file that is not synced at all.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if errno := n.disk.failure("write"); errno != 0 {
		return nil, nil, 0, errno
	}

	before, _ := stat(n.path(name))
	n.changeName(name)
	child, handle, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	now, _ := stat(n.path(name))
	if now.inode != before.inode {
		n.disk.noteNew(now.inode)
	}
	return child, &file{handle.(*fs.LoopbackFile), n, now.inode, n.path(name)}, fuseFlags, 0
}

// Open opens a file. It keeps the content that it truncates.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	e, _ := stat(n.path())
	if flags&syscall.O_TRUNC != 0 {
		if errno := n.disk.noteWrite(e.inode, n.path(), 0, -1); errno != 0 {
			return nil, 0, errno
		}
	}
	handle, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &file{handle.(*fs.LoopbackFile), n, e.inode, n.path()}, fuseFlags, 0
}

// Setattr keeps the content that a truncation cuts off.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		if errno := n.disk.failure("write"); errno != 0 {
			return errno
		}
		inode, path := n.identify(f)
		if errno := n.disk.noteWrite(inode, path, int64(size), -1); errno != 0 {
			return errno
		}
	}
	if opened, ok := f.(*file); ok {
		return opened.LoopbackFile.Setattr(ctx, in, out)
	}
	return n.LoopbackNode.Setattr(ctx, nil, in, out)
}

// identify returns a file's inode and a path at which it still exists.
func (n *node) identify(f fs.FileHandle) (inode uint64, path string) {
	opened, ok := f.(*file)
	if !ok {
		e, _ := stat(n.path())
		return e.inode, n.path()
	}
	return opened.inode, opened.current()
}

// current returns a path of an open file, whose name may have changed or been removed.
func (f *file) current() string {
	for _, path := range []string{f.path, filepath.Join(f.node.grave, strconv.FormatUint(f.inode, 10))} {
		if e, _ := stat(path); e.inode == f.inode {
			return path
		}
	}
	return f.node.path()
}

// Mkdir, Symlink, Mknod and Link add names.

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.changeName(name)
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.changeName(name)
	return n.LoopbackNode.Symlink(ctx, target, name, out)
}

func (n *node) Mknod(ctx context.Context, name string, mode, rdev uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.changeName(name)
	return n.LoopbackNode.Mknod(ctx, name, mode, rdev, out)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.changeName(name)
	return n.LoopbackNode.Link(ctx, target, name, out)
}

// Unlink removes a name.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.changeName(name)
	if errno := n.bury(name); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	entries, err := os.ReadDir(n.path(name))
	if err != nil {
		return fs.ToErrno(err)
	}
	if len(entries) > 0 {
		return syscall.ENOTEMPTY
	}
	n.changeName(name)
	return n.bury(name)
}

// Rename changes two names.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if errno := n.disk.failure("write"); errno != 0 {
		return errno
	}

	to := parent.(*node)
	n.changeName(name)
	to.changeName(newName)
	_, isDir := stat(to.path(newName))
	// The replaced file is removed. A directory is replaced only if it is empty.
	if flags == 0 && !isDir {
		if errno := to.bury(newName); errno != 0 && errno != syscall.ENOENT {
			return errno
		}
	}
	return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
}

// Fsync syncs a file, or the names in a directory.
func (n *node) Fsync(ctx context.Context, f fs.FileHandle, _ uint32) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.IsDir() {
		e, _ := stat(n.path())
		return n.disk.syncNames(ctx, e.inode)
	}

	inode, path := n.identify(f)
	info, err := os.Lstat(path)
	if err != nil {
		return fs.ToErrno(err)
	}
	return n.disk.syncFile(ctx, inode, info.Size())
}

// PassthroughFd stops the kernel from bypassing this file system.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

func (f *file) Read(ctx context.Context, buffer []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	f.node.disk.mu.Lock()
	errno := f.node.disk.failure("read")
	f.node.disk.mu.Unlock()
	if errno != 0 {
		return nil, errno
	}
	return f.LoopbackFile.Read(ctx, buffer, offset)
}

func (f *file) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if errno := f.node.disk.failure("write"); errno != 0 {
		return 0, errno
	}
	if errno := f.node.disk.noteWrite(f.inode, f.current(), offset, int64(len(data))); errno != 0 {
		return 0, errno
	}
	return f.LoopbackFile.Write(ctx, data, offset)
}

// Allocate extends a file. It does not change existing content.
func (f *file) Allocate(ctx context.Context, offset, size uint64, mode uint32) syscall.Errno {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if errno := f.node.disk.noteWrite(f.inode, f.current(), int64(offset), int64(size)); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Allocate(ctx, offset, size, mode)
}

// directory is an open directory, which can be synced.
type directory struct {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
	node *node
}

// OpendirHandle opens a directory.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &directory{handle.(fs.FileReaddirenter), handle.(fs.FileSeekdirer), handle.(fs.FileReleasedirer), n}, fuseFlags, 0
}

// Fsyncdir syncs the names in the directory.
func (d *directory) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	return d.node.Fsync(ctx, nil, flags)
}
