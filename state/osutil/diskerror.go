package osutil

import (
	"errors"
	"syscall"
)

// Hint returns advice about an error of a disk; "" for any other error.
func Hint(err error) string {
	switch {
	case errors.Is(err, syscall.EIO):
		return "look for the disk's errors in dmesg"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the disk"
	case errors.Is(err, syscall.EROFS):
		return "mount the disk for writing"
	}

	return ""
}

// Explain returns the text of an error, with the hint if it is one of a disk: for records, which have no
// place of their own for hints.
func Explain(err error) string {
	if hint := Hint(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
