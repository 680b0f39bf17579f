// Package archive is the file of a backup: a zip archive, which any unzip opens.
//
//	keys.jsonl                       each key with its JSON, one a line
//	blobs/SHA256                     charms, resources, and settings too large for a key
//	credentials/NAME                 what the state's URL names, if that was asked for
//	machines/ID/units/SERVICE-N.tar  a unit's folder, if that was asked for
//	header.json                      Header: what it is of, what is in it and what is not
//	SHA256SUMS                       the sums of all others, as sha256sum prints them
//
// It is not the state: package state says what keys mean, and who restores a backup
// what becomes of it. Everybody may import it; it imports nothing of bijou.
package archive

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Format is what this code reads and writes.
const Format = 1

// The kinds of what is backed up.
const (
	Environment = "environment"
	Keyspace    = "neco" // its keys
)

// Header says what a backup is of.
type Header struct {
	Format int    `json:"format" yaml:"format"`
	Kind   string `json:"kind" yaml:"kind"`
	Bijou  string `json:"bijou" yaml:"bijou"` // version of what wrote it

	Name     string `json:"name,omitempty" yaml:"name,omitempty"` // of the environment, as the next two
	UUID     string `json:"uuid,omitempty" yaml:"uuid,omitempty"`
	Provider string `json:"provider,omitempty" yaml:"provider,omitempty"`
	State    string `json:"state,omitempty" yaml:"state,omitempty"` // URL of its store; files of the environment's folder by their names in it

	Time        time.Time `json:"time" yaml:"time"`
	Revision    int64     `json:"revision" yaml:"revision"`         // of the store, at which all keys were read
	StateFormat int       `json:"state-format" yaml:"state-format"` // of the keys
	Keys        int       `json:"keys" yaml:"keys"`
	Blobs       int       `json:"blobs" yaml:"blobs"`

	Has   []string `json:"has" yaml:"has"`     // what is in it, in words
	Lacks []string `json:"lacks" yaml:"lacks"` // what is not
}

// ErrDamaged: the file is no backup, or not the one that was written.
var ErrDamaged = errors.New("it is no whole backup")

const (
	keysFile   = "keys.jsonl"
	headerFile = "header.json"
	sumsFile   = "SHA256SUMS"
)

// fileForm is what a backup's files may be called, but for headerFile and sumsFile.
var fileForm = regexp.MustCompile(`^(keys\.jsonl|blobs/[0-9a-f]{64}|credentials/[a-z][a-z0-9-]*|machines/[0-9]+/units/[a-z][a-z0-9-]*\.tar)$`)

// Blob, Credential and Folder name the files of a backup.
func Blob(sum string) string        { return "blobs/" + sum }
func Credential(name string) string { return "credentials/" + name }

// Folder is the file of a unit's folder, given the name of that.
func Folder(machine, name string) string {
	return fmt.Sprintf("machines/%s/units/%s.tar", machine, name)
}

func refuseDamaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
