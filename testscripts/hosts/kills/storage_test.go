package kills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/state"
)

// keeper makes a recorder charm with storage.
func (s *stage) keeper() string {
	folder := s.newCharm("keeper")
	metadata := filepath.Join(folder, "metadata.yaml")
	data, err := os.ReadFile(metadata)
	check(s.t, err)
	text := strings.Replace(string(data), "name: recorder", "name: keeper\nstorage: {data: {type: filesystem, location: "+
		filepath.Join(s.Home, "kept")+", multiple: {range: 1+}}}", 1)
	check(s.t, os.WriteFile(metadata, []byte(text), 0o644))
	return folder
}

// store makes storage, moves it from one unit to the other, and removes it.
func (s *stage) store() {
	s.markStorage()
	s.turn++
	s.Try("add-storage", "keeper/0", "data")
	for i, one := range s.storages() {
		// This detaches a storage in every other turn. If the turn itself decided, some storages would never
		// be removed.
		isRemoved := (i+s.turn/2)%2 == 0
		switch {
		case one.Unit == "" && isRemoved:
			s.Try("remove-storage", one.ID)
			delete(s.marked, one.ID)
		case one.Unit == "":
			s.Try("attach-storage", "keeper/1", one.ID)
		case one.State == state.StorageAttached && i > 0:
			s.Try("detach-storage", one.ID)
		}
	}
}

func (s *stage) storages() (all []state.Storage) {
	s.view(func(v *state.View) (err error) {
		all, err = v.Storages()
		return err
	})
	return all
}

// markStorage writes each storage's id into the storage, where its unit finds it.
func (s *stage) markStorage() {
	for _, one := range s.storages() {
		if one.State == state.StorageAttached && !s.marked[one.ID] {
			err := os.WriteFile(filepath.Join(one.Location, "id"), []byte(one.ID), 0o644)
			if errors.Is(err, fs.ErrNotExist) { // the storage has been removed since it was listed
				continue
			}
			check(s.t, err)
			s.marked[one.ID] = true
		}
	}
}

// checkStorage waits until no storage changes any longer. Then each storage must contain exactly the file that was
// written into it, and the directories of removed storages must no longer exist.
func (s *stage) checkStorage() {
	var left []string
	s.eventually("storage is at rest", func() string {
		left = nil
		for _, one := range s.storages() {
			if one.Life != state.Alive || one.State != state.StorageAttached && one.State != state.StorageDetached {
				return one.ID + " is " + string(one.Life) + " " + string(one.State)
			}
			left = append(left, strings.ReplaceAll(one.ID, "/", "-"))
		}
		return ""
	})
	found, err := filepath.Glob(s.Machine("storage", "*"))
	check(s.t, err)
	if len(found) != len(left) {
		s.wrong = append(s.wrong, "storage on the machine: "+strings.Join(found, " ")+"; in the state: "+strings.Join(left, " "))
	}
	for id := range s.marked {
		data, err := os.ReadFile(filepath.Join(s.Machine("storage", strings.ReplaceAll(id, "/", "-")), "id"))
		if string(data) != id {
			s.wrong = append(s.wrong, "storage "+id+" holds "+string(data)+", not "+id+" ("+fmt.Sprint(err)+")")
		}
	}
}
