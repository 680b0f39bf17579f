package lyingdisk

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	gofuse "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Program is the name under which a test binary serves a disk. Its arguments are the mount point, a directory
// for the files, and a seed. It reads orders from stdin, one per line, and answers each with a line. The
// orders are "fail WHAT...", "fail-at N WHAT", "fail-from N WHAT", "kill-at N WHAT", "heal", "cut SURVIVE",
// "failed WHAT".
const Program = "lying-disk"

// Main serves a disk until stdin ends.
func Main() {
	seed, err := strconv.ParseUint(os.Args[3], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &served{mount: os.Args[1], base: os.Args[2], dice: rand.New(rand.NewPCG(seed, 0))}
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type served struct {
	mount, base string
	disk        *disk
	server      *fuse.Server
	dice        *rand.Rand
}

func (s *served) live() string  { return filepath.Join(s.base, "live") }
func (s *served) grave() string { return filepath.Join(s.base, "grave") }

func (s *served) serve() error {
	if err := os.MkdirAll(s.live(), 0o755); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	fmt.Println("ready")

	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := s.obey(strings.Fields(lines.Text()))
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
	return s.server.Unmount()
}

// start mounts a disk on which all existing files are synced.
func (s *served) start() error {
	if err := os.RemoveAll(s.grave()); err != nil {
		return err
	}
	if err := os.Mkdir(s.grave(), 0o755); err != nil {
		return err
	}
	s.disk = newDisk(s.dice)

	var st syscall.Stat_t
	if err := syscall.Stat(s.live(), &st); err != nil {
		return err
	}
	root := &gofuse.LoopbackRoot{Path: s.live(), Dev: uint64(st.Dev)}
	newNode := func() *node {
		return &node{LoopbackNode: gofuse.LoopbackNode{RootData: root}, disk: s.disk, grave: s.grave()}
	}
	//lint:ignore SA1019 what takes its place wraps loopback's nodes, and Rename takes none that is wrapped
	root.NewNode = func(*gofuse.LoopbackRoot, *gofuse.Inode, string, *syscall.Stat_t) gofuse.InodeEmbedder {
		return newNode()
	}
	top := newNode()
	root.RootNode = top

	server, err := gofuse.Mount(s.mount, top, &gofuse.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: Program, Name: "bijou", MaxWrite: 1 << 17},
	})
	s.server = server
	return err
}

func (s *served) obey(words []string) (string, error) {
	s.disk.mu.Lock()
	defer func() { s.disk.mu.Unlock() }()

	switch words[0] {
	case "fail":
		for _, what := range words[1:] {
			s.disk.fails[what] = true
		}
	case "fail-at", "fail-from", "kill-at":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return "", err
		}
		s.disk.left, s.disk.next = n, words[2]
		s.disk.stays, s.disk.kills = words[0] == "fail-from", words[0] == "kill-at"
	case "heal":
		clear(s.disk.fails)
		s.disk.left, s.disk.kills = 0, false
	case "failed":
		return strconv.Itoa(s.disk.counts[words[1]]), nil
	case "cut":
		survive, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return "", err
		}
		before := s.disk
		err = s.cut(survive)
		before.mu.Unlock()
		s.disk.mu.Lock()
		return "cut", err
	}
	return "done", nil
}

// unmount retries for some seconds. A killed process closes its files a little later, and until then the disk
// must answer its calls.
func (s *served) unmount() (err error) {
	for range 200 {
		err = syscall.Unmount(s.mount, 0)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}

		s.disk.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		s.disk.mu.Lock()
	}
	return err
}

// cut simulates a power cut. No process may use the disk during the cut.
func (s *served) cut(survive float64) error {
	if err := s.unmount(); err != nil {
		return fmt.Errorf("cannot unmount: %w", err)
	}
	places, err := s.findInodes()
	if err != nil {
		return err
	}
	next := filepath.Join(s.base, "next")
	var st syscall.Stat_t
	if err := syscall.Stat(s.live(), &st); err != nil {
		return err
	}
	if err := s.rebuild(st.Ino, s.live(), next, places, survive); err != nil {
		return err
	}

	if err := os.RemoveAll(s.live()); err != nil {
		return err
	}
	if err := os.Rename(next, s.live()); err != nil {
		return err
	}
	return s.start()
}

// findInodes returns the path of each inode, under one of its names or in the grave.
func (s *served) findInodes() (places map[uint64]string, err error) {
	places = map[uint64]string{}
	for _, top := range []string{s.grave(), s.live()} {
		err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && path != top {
				e, _ := stat(path)
				places[e.inode] = path
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}

// rebuild fills target with the entries of a directory that survive.
func (s *served) rebuild(inode uint64, path, target string, places map[uint64]string, survive float64) error {
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		if err := os.Chmod(target, info.Mode()); err != nil {
			return err
		}
	}

	names := map[string]entry{}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		names[e.Name()], _ = stat(filepath.Join(path, e.Name()))
	}
	changed := s.disk.names[inode]
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if !s.disk.survives(survive) {
			names[name] = changed[name]
		}
	}

	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := s.rebuildEntry(names[name], filepath.Join(target, name), places, survive); err != nil {
			return err
		}
	}
	return nil
}

func (s *served) rebuildEntry(e entry, target string, places map[uint64]string, survive float64) error {
	switch path := places[e.inode]; {
	case e.inode == 0:
		return nil
	case e.link != "":
		return os.Symlink(e.link, target)
	case path == "":
		return fmt.Errorf("inode %d of %s is nowhere", e.inode, target)
	default:
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return s.rebuild(e.inode, path, target, places, survive)
		}
		if !info.Mode().IsRegular() {
			return nil // a socket does not survive its server
		}
		data, err := s.disk.contents(e.inode, path, survive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
		return os.Chmod(target, info.Mode())
	}
}
