package release

import (
	"encoding/json"
	"fmt"

	"bijou/state/digest"

	"gopkg.in/yaml.v3"
)

// PlanDigest returns the digest of a manifest's canonical form: JSON with sorted keys,
// without the version. This program need not know the manifest's fields, which may be
// newer.
func PlanDigest(manifest []byte) (string, error) {
	var plan map[string]any
	err := yaml.Unmarshal(manifest, &plan)
	delete(plan, "version")
	if err == nil {
		manifest, err = json.Marshal(plan)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	return digest.Of(manifest), nil
}
