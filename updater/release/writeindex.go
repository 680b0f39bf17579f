package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bijou/state/osutil"
)

// WriteIndex writes the index of all releases in a directory. Each subdirectory that has a tag as its name
// and contains SumsFile is a release. WriteIndex marks as pre-releases the tags in preReleases, and the tags
// that are already marked in the current index. It returns all tags, the newest version first.
func WriteIndex(dir string, preReleases ...string) (tags []string, err error) {
	path := filepath.Join(dir, IndexFile)
	current, err := readIndexFile(path)
	if err != nil {
		return nil, err
	}
	for _, r := range current.Releases {
		if r.PreRelease {
			preReleases = append(preReleases, r.Tag)
		}
	}

	releases, err := listReleases(dir, preReleases)
	if err != nil {
		return nil, err
	}
	for _, r := range releases {
		tags = append(tags, r.Tag)
	}

	data, err := json.MarshalIndent(index{Format: indexFormat, Releases: releases}, "", "  ")
	if err != nil {
		return nil, err
	}

	return tags, osutil.WriteFile(path, append(data, '\n'), 0o644)
}

// listReleases returns the releases in a directory, the newest version first. It marks the tags in
// preReleases as pre-releases. If there are no releases, it returns an empty list and not nil, so that the
// index has a list.
func listReleases(dir string, preReleases []string) ([]indexRelease, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	releases := []indexRelease{}
	for _, e := range entries {
		files, err := listRelease(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", e.Name(), err)
		}

		isRelease := files != nil && isTag(e.Name())
		if isRelease {
			releases = append(releases, indexRelease{
				Tag:        e.Name(),
				PreRelease: slices.Contains(preReleases, e.Name()),
				Files:      files,
			})
		}
	}

	// isTag has already parsed all tags without an error.
	slices.SortStableFunc(releases, func(a, b indexRelease) int {
		_, versionA, _ := ParseTag(a.Tag)
		_, versionB, _ := ParseTag(b.Tag)
		return versionB.Compare(versionA)
	})
	return releases, nil
}

// isTag reports whether the name is a valid tag that can also be the name of a directory.
func isTag(name string) bool {
	_, _, err := ParseTag(name)
	return err == nil && isPlainName(name)
}

// readIndexFile reads the index at the path. It returns an empty index if the file does not exist.
func readIndexFile(path string) (index, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return index{}, nil
	}
	if err != nil {
		return index{}, err
	}

	return parseIndex(data)
}

// listRelease returns the files of a release. It returns nil if it cannot find SumsFile in dir, which is then
// not a release. It leaves out subdirectories, and files whose names cannot be in an index.
func listRelease(dir string) (files []indexFile, err error) {
	if _, err := os.Stat(filepath.Join(dir, SumsFile)); err != nil {
		return nil, nil
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && isPlainName(e.Name()) {
			files = append(files, indexFile{Name: e.Name(), Size: info.Size()})
		}
	}

	return files, nil
}
