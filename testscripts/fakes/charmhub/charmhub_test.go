package charmhub_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"bijou/testscripts/fakes/charmhub"
)

// TestInfo checks the fields of info that clients other than bijou read: libjuju needs the resources,
// and whether the default release is subordinate.
func TestInfo(t *testing.T) {
	server := charmhub.New()
	defer server.Close()
	base := charmhub.Base{Architecture: "amd64", Name: "ubuntu", Channel: "24.04"}
	server.Publish(charmhub.Charm{
		Name:      "sub",
		Revisions: []charmhub.Revision{{Number: 3, Metadata: "name: sub\nsubordinate: true\n", Bases: []charmhub.Base{base}}},
		Resources: map[string]charmhub.Resource{"site": {Type: "file", Revisions: [][]byte{[]byte("x")}}},
		Releases: []charmhub.Release{
			{Track: "latest", Risk: "stable", Base: base, Revision: 3, Resources: map[string]int{"site": 1}},
		},
	})

	resp, err := http.Get(server.URL() + "/v2/charms/info/sub?fields=default-release.resources")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	var answer struct {
		Default struct {
			Resources []struct {
				Name string `json:"name"`
			} `json:"resources"`
			Revision map[string]any `json:"revision"`
		} `json:"default-release"`
		Channels []struct {
			Revision map[string]any `json:"revision"`
		} `json:"channel-map"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}

	if r := answer.Default.Resources; len(r) != 1 || r[0].Name != "site" {
		t.Errorf("default-release.resources: %+v, want site", r)
	}
	if got := answer.Default.Revision["subordinate"]; got != true {
		t.Errorf("default-release.revision.subordinate: %v, want true", got)
	}
	if len(answer.Channels) != 1 || answer.Channels[0].Revision["metadata-yaml"] != nil {
		t.Errorf("channel-map: %+v, want one entry without metadata-yaml", answer.Channels)
	}
}
