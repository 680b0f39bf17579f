package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

// Digest returns the digest of a manifest in one canonical form: as JSON with sorted
// keys, without its version. What it is made of need not be known to this program,
// which may be older than the manifest.
func Digest(manifest []byte) (string, error) {
	var plan map[string]any
	err := yaml.Unmarshal(manifest, &plan)
	delete(plan, "version")
	if err == nil {
		manifest, err = json.Marshal(plan)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	return digest(manifest), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
