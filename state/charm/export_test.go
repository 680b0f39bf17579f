package charm

// ParseMeta reads and checks metadata.yaml.
func ParseMeta(data []byte) (*Meta, error) {
	var raw metaYAML
	if err := raw.merge(data); err != nil {
		return nil, err
	}
	return raw.toMeta()
}

// HasHook reports whether the charm has a file or symlink hooks/NAME.
func (c *Charm) HasHook(name string) bool { return c.hasFile("hooks/" + name) }
