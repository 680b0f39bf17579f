package charm

import "fmt"

// The limits of a charm.
const (
	MaxPacked   = 64 << 20 // bytes of an archive
	MaxUnpacked = 1 << 30  // bytes of all files of a charm together
	MaxFiles    = 100_000  // files, links and directories of a charm
	MaxYAML     = 1 << 20  // bytes of metadata.yaml, config.yaml and the like
)

// maxDirectory bounds what is read of an archive's list of files: enough for
// MaxFiles with long names, too little to fill the memory of an agent.
const maxDirectory = 32 << 20

// limits are parameters so that tests can pass smaller ones.
type limits struct {
	packed, unpacked int64
	files            int
}

func defaultLimits() limits { return limits{packed: MaxPacked, unpacked: MaxUnpacked, files: MaxFiles} }

func (l limits) checkPacked(size int64) error {
	if size > l.packed {
		return fmt.Errorf("archive is too big: %s or more, at most %s", formatSize(size), formatSize(l.packed))
	}
	return nil
}

func (l limits) checkUnpacked(size int64) error {
	if size > l.unpacked {
		return fmt.Errorf("files are too big: %s or more together, at most %s", formatSize(size), formatSize(l.unpacked))
	}
	return nil
}

func (l limits) checkFiles(n int) error {
	if n > l.files {
		return fmt.Errorf("too many files: %d or more, at most %d", n, l.files)
	}
	return nil
}

// wrapError puts what could not be done in front of an error, if there is one.
func wrapError(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}

// formatSize is exact, so that a limit and what exceeds it by one byte differ.
func formatSize(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
