package osutil

import (
	"errors"
	"syscall"
)

// Hint returns advice about a disk error. It returns "" for any other error.
func Hint(err error) string {
	switch {
	case errors.Is(err, syscall.EIO):
		return "look for the disk's errors in dmesg"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space on the disk"
	case errors.Is(err, syscall.EROFS):
		return "mount the disk for writing"
	}

	return ""
}

// Explain returns the text of an error. If it is a disk error, the text includes the hint. It is for records,
// which do not have a separate field for hints.
func Explain(err error) string {
	if hint := Hint(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
