package release

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
)

// partFile is a file next to an author's manifest that becomes part of the release.
type partFile struct {
	Path string
	Sum  string // the file's SHA-256 sum in hexadecimal
}

// completeManifest turns an author's manifest into the manifest of a release. The author's manifest names the
// files of the release by path. It can leave out their sums, and also the version if version is not "". text is
// the completed file, m is its content, and parts are the files of the release by their names in it.
func completeManifest(
	path string,
	data []byte,
	version string,
) (text []byte, m Manifest, parts map[string]partFile, err error) {
	// Find the parts. Since addPart fills in names and sums, this also checks the rest of the author's manifest.
	dir := filepath.Dir(path)
	parts = map[string]partFile{}
	_, err = readManifest(path, data, func(f *File) error { return addPart(parts, dir, f) })
	if err != nil {
		return nil, m, nil, err
	}

	// Edit the YAML nodes and not the struct, so that comments and key order survive.
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := setVersion(root.Content[0], version); err != nil {
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}
	nameParts(&root, parts)
	text, err = encodeYAML(&root)
	if err != nil {
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}

	// Read the result as a server will read it.
	m, err = ReadManifest(path, text)
	return text, m, parts, err
}

// encodeYAML returns the node as a YAML file.
func encodeYAML(root *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}

	err := e.Close()
	return b.Bytes(), err
}

// addPart adds f to the parts if f names a file by path. It sets the sum of f, and replaces the path with the
// file's name in the release. A relative path starts at dir.
func addPart(parts map[string]partFile, dir string, f *File) error {
	if f.Name == "" {
		return nil
	}

	path := f.Name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	sum, _, err := osutil.DigestFile(path)
	if err != nil {
		return err
	}
	if f.SHA256 != "" && f.SHA256 != sum {
		return fmt.Errorf("the sum of %s is %s, not %s as in the manifest", path, sum, f.SHA256)
	}

	f.SHA256 = sum
	f.Name = filepath.Base(path)
	if other, twice := parts[f.Name]; twice && other.Sum != sum {
		return fmt.Errorf("%s and %s would have the same name in the release", other.Path, path)
	}

	parts[f.Name] = partFile{Path: path, Sum: sum}
	return nil
}

// setVersion adds the version to a manifest that has none. version is "" if the author has given no version
// outside of the manifest. setVersion returns an error if there is no version at all, or if the manifest has
// a different version.
func setVersion(root *yaml.Node, version string) error {
	existing := valueOf(root, "version")
	switch {
	case existing == nil && version == "":
		return errors.New("the plan has no version; add the line version: 1.0-1, or give --version 1.0-1")
	case existing == nil:
		root.Content = append(scalars("version", version), root.Content...)
	case version != "" && !Same(existing.Value, version):
		return fmt.Errorf("the plan has version %s, not %s", existing.Value, version)
	}

	return nil
}

// nameParts replaces the paths of the parts with their names in the release, and adds missing sums. It
// changes n and all nodes below n.
func nameParts(n *yaml.Node, parts map[string]partFile) {
	file := valueOf(n, "file")
	// An ignition also has a key called "file", but its value is a mapping.
	if file != nil && file.Kind == yaml.ScalarNode {
		file.Value = filepath.Base(file.Value)
		if valueOf(n, "sha256") == nil {
			n.Content = append(n.Content, scalars("sha256", parts[file.Value].Sum)...)
		}
	}

	for _, child := range n.Content {
		nameParts(child, parts)
	}
}

// valueOf returns the value of a mapping's key. It returns nil if n is not a mapping or does not have the
// key.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}

	return nil
}

// scalars returns a key and its value as YAML nodes. The value is quoted, so that a sum that consists only of
// digits is not read as a number.
func scalars(key, value string) []*yaml.Node {
	return []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: key},
		{Kind: yaml.ScalarNode, Value: value, Style: yaml.DoubleQuotedStyle},
	}
}
