package sqlite

import "fmt"

// Remove deletes the store at path with all the files that belong to it: whoever
// has it open gets ErrStoreGone. A store that is not there is no error.
func Remove(path string) error {
	if err := removeAll(path, path+"-wal", path+"-shm", path+"-journal", path+"-bell"); err != nil {
		return fmt.Errorf("cannot remove store %q: %w", path, err)
	}
	return nil
}
