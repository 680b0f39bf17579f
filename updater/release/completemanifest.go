package release

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
)

// partFile is a file beside an author's manifest, which the release brings.
type partFile struct {
	Path string
	Sum  string
}

// completeManifest makes the manifest of a release of its author's, in which files are named by
// paths, without sums. It returns the files by the names that they have in the release. A version
// that is given is that of a manifest which does not say one.
func completeManifest(path string, data []byte, version string) (text []byte, m Manifest, parts map[string]partFile, err error) {
	dir := filepath.Dir(path)
	parts = map[string]partFile{}
	_, err = readManifest(path, data, func(f *File) error { return addPart(parts, dir, f) })
	if err != nil {
		return nil, m, nil, err
	}

	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := setVersion(root.Content[0], version); err != nil {
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}
	nameParts(&root, parts)

	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil { // into memory, where nothing is left to close
		return nil, m, nil, fmt.Errorf("%s: %w", path, err)
	}

	m, err = ReadManifest(path, b.Bytes())
	return b.Bytes(), m, parts, err
}

// addPart adds a file of the release to the parts, and replaces its name by its sum.
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
		return fmt.Errorf("the sum of %s is %s, not %s as the manifest says", path, sum, f.SHA256)
	}

	f.SHA256 = sum
	f.Name = filepath.Base(path)
	if other, twice := parts[f.Name]; twice && other.Sum != sum {
		return fmt.Errorf("%s and %s would have one name in the release", other.Path, path)
	}

	parts[f.Name] = partFile{Path: path, Sum: sum}
	return nil
}

func setVersion(root *yaml.Node, version string) error {
	at := valueOf(root, "version")
	switch {
	case at == nil && version == "":
		return errors.New("it does not say its version; add the line version: 1.0-1, or give --version 1.0-1")
	case at == nil:
		root.Content = append(scalars("version", version), root.Content...)
	case version != "" && !Same(at.Value, version):
		return fmt.Errorf("it is of version %s, not %s", at.Value, version)
	}

	return nil
}

// nameParts writes the names and sums of the parts in the place of the paths.
func nameParts(n *yaml.Node, parts map[string]partFile) {
	if at := valueOf(n, "file"); at != nil && at.Kind == yaml.ScalarNode {
		at.Value = filepath.Base(at.Value)
		if sum := valueOf(n, "sha256"); sum == nil {
			n.Content = append(n.Content, scalars("sha256", parts[at.Value].Sum)...)
		}
	}

	for _, child := range n.Content {
		nameParts(child, parts)
	}
}

// valueOf returns the value of a mapping's key; nil if it is none, or has none.
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

// scalars returns a key and its value, in quotes: a sum of digits only is no number.
func scalars(key, value string) []*yaml.Node {
	return []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: key},
		{Kind: yaml.ScalarNode, Value: value, Style: yaml.DoubleQuotedStyle},
	}
}
