package access

import (
	"maps"
	"strings"
)

// world is a state as a map of its keys. The attacker has its machine 1. It has
//
//   - wordpress/0, which leads its service, with the subordinate logging/0, and blog/0, which is dying;
//   - relation 0 with mysql on machine 2, relation 1 of container scope with logging, and the peer relation 2
//     with wordpress/1 on machine 2. Relation 3, between mysql and vault on machine 3, does not concern
//     machine 1;
//   - secrets: own and ours (the service's), granted by mysql, revoked by mysql, theirs (of vault), and
//     shared, an operators' secret that is granted to wordpress.
type world map[string]string

func (w world) Get(key string) ([]byte, error) {
	value, ok := w[key]
	if !ok {
		return nil, nil
	}
	return []byte(value), nil
}

func (w world) List(prefix string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for key, value := range w {
		if strings.HasPrefix(key, prefix) {
			all[key] = []byte(value)
		}
	}
	return all, nil
}

// with returns the changed world. An empty value removes a key.
func (w world) with(changes world) world {
	next := maps.Clone(w)
	for key, value := range changes {
		if next[key] = value; value == "" {
			delete(next, key)
		}
	}
	return next
}

func newWorld() world {
	unit := func(charm, machine, more string) string {
		return `{"charm":"local:trusty/` + charm + `","machine":"` + machine + `","series":"trusty","life":"alive"` + more + `}`
	}
	service := func(charm string) string {
		return `{"charm":"local:trusty/` + charm + `","origin":{},"series":"trusty","dialect":"modern","life":"alive"}`
	}
	relation := func(scope string, services ...string) string {
		var ends []string
		for _, s := range services {
			ends = append(ends, `{"service":"`+s+`","name":"db","role":"peer"}`)
		}
		return `{"interface":"db","scope":"` + scope + `","life":"alive","endpoints":[` + strings.Join(ends, ",") + `]}`
	}
	aSecret := func(owner, more string) string {
		return `{"origin":"uuid","owner":` + owner + `,"latest":2,"revisions":{"1":{"created":"2026-01-01T00:00:00Z"},"2":{"created":"2026-01-02T00:00:00Z"}},` +
			`"created":"2026-01-01T00:00:00Z","updated":"2026-01-02T00:00:00Z"` + more + `}`
	}

	return world{
		"format": `{"format":1}`, "environment": `{"name":"local","tools":"1-a"}`, "migrating": `{}`, "moved": `{}`, "migration": `{}`,
		"provisioner": `{"messages":["x"]}`,

		"presence/machine-1": `{"session":"S1"}`, "presence/machine-2": `{"session":"S2"}`,
		"presence/unit-wordpress-0": `{"session":"S1"}`, "presence/unit-wordpress-1": `{"session":"S2"}`,
		"presence/unit-mysql-0": `{"session":"S2"}`,
		"claims/machine-1":      `{"epoch":3,"holder":{"host":"h1"}}`, "claims/machine-2": `{"epoch":5,"holder":{"host":"h2"}}`,
		"leaders/provisioner":        `{"session":"S0"}`,
		"leaders/services/wordpress": `{"session":"S1","unit":"wordpress/0"}`,
		"leaders/services/mysql":     `{"session":"S2","unit":"mysql/0"}`,
		"leaders/services/logging":   `{"session":"S2","unit":"logging/1"}`,
		"leaders/services/gone":      `{"session":"S2","unit":"gone/0"}`, // the service no longer exists

		"charms/local:trusty/wordpress-3": `{"sha256":"w"}`, "charms/local:trusty/mysql-1": `{"sha256":"m"}`,
		"charms/local:trusty/wordpress-4": `{"sha256":"w4"}`,
		"tools/1-a":                       `{"sha256":"a"}`,

		"services/wordpress": service("wordpress-3"), "services/logging": service("logging-1"), "services/blog": service("blog-1"),
		"services/mysql": service("mysql-1"), "services/vault": service("vault-1"),
		"services/wordpress/config": `{"version":1}`, "services/mysql/config": `{"version":1}`,
		"services/wordpress/status": `{"status":"active"}`, "services/logging/status": `{"status":"active"}`, "services/mysql/status": `{"status":"active"}`,
		"services/wordpress/upgrade": `{"charm":"local:trusty/wordpress-3"}`, "services/mysql/upgrade": `{"charm":"x"}`,
		"services/wordpress/leader-settings": `{"version":1}`, "services/logging/leader-settings": `{"version":1}`, "services/mysql/leader-settings": `{"version":1}`,
		"services/wordpress/relations/0": `{"name":"db","other":"mysql:db"}`, "services/mysql/relations/0": `{"name":"db","other":"wordpress:db"}`,
		"services/wordpress/relations/1": `{"name":"info","other":"logging:info"}`, "services/logging/relations/1": `{"name":"info","other":"wordpress:info"}`,
		"services/wordpress/relations/2": `{"name":"cluster"}`,
		"services/mysql/relations/3":     `{"name":"db","other":"vault:db"}`, "services/vault/relations/3": `{"name":"db","other":"mysql:db"}`,
		"services/wordpress/secrets": `{"owned":["ours"],"granted":["shared"]}`, "services/mysql/secrets": `{"owned":[]}`,

		"units/wordpress/0": unit("wordpress-3", "1", `,"subordinates":["logging/0"],"resolved":"retry","resolved-relations":{"0":"done"},"interrupt":"R","status":{"status":"active"}`),
		"units/wordpress/1": unit("wordpress-3", "2", ``),
		"units/logging/0":   unit("logging-1", "1", `,"principal":"wordpress/0"`),
		"units/logging/1":   unit("logging-1", "2", `,"principal":"wordpress/1"`),
		"units/blog/0":      strings.Replace(unit("blog-1", "1", ``), "alive", "dying", 1),
		"units/mysql/0":     unit("mysql-1", "2", ``),
		"units/vault/0":     unit("vault-1", "3", ``),

		"units/wordpress/0/ports": `[]`, "units/wordpress/1/ports": `[]`, "units/mysql/0/ports": `[]`,
		"units/wordpress/0/actions": `{"waiting":[0]}`, "units/mysql/0/actions": `{"waiting":[1]}`,
		"units/wordpress/0/debug": `{"socket":"s"}`, "units/mysql/0/debug": `{"socket":"s"}`,
		"units/wordpress/0/secrets": `{"owned":["own"],"consumed":["granted","revoked"]}`, "units/mysql/0/secrets": `{"owned":["granted","revoked"],"consumed":["own"]}`,
		"units/vault/0/secrets":     `{"owned":["theirs"]}`,
		"units/wordpress/0/storage": `["data/0"]`, "units/mysql/0/storage": `["data/1"]`,
		"units/wordpress/0/state": `{"version":1}`, "units/mysql/0/state": `{"version":1}`,
		"units/wordpress/0/restored": `{"backup":"2026-01-01T00:00:00Z"}`, "units/mysql/0/restored": `{"backup":"2026-01-01T00:00:00Z"}`,

		"actions/0": `{"unit":"wordpress/0","name":"backup","status":"running"}`, "actions/1": `{"unit":"mysql/0","name":"backup","status":"running"}`,
		"actions/2":                `{"unit":"wordpress/0","name":"backup","status":"completed"}`,
		"resources/wordpress/data": `{"sha256":"r"}`, "resources/mysql/data": `{"sha256":"r"}`,

		"secrets/own":     aSecret(`{"unit":"wordpress/0"}`, `,"consumers":{"mysql/0":{"revision":1}}`),
		"secrets/ours":    aSecret(`{"service":"wordpress"}`, `,"consumers":{"wordpress/0":{"revision":1}}`),
		"secrets/granted": aSecret(`{"unit":"mysql/0"}`, `,"auto-prune":true,"grants":[{"relation":0,"service":"wordpress"}],"consumers":{"wordpress/0":{"revision":1}}`),
		"secrets/revoked": aSecret(`{"unit":"mysql/0"}`, `,"consumers":{"wordpress/0":{"revision":1}}`),
		"secrets/theirs":  aSecret(`{"unit":"vault/0"}`, `,"grants":[{"relation":3,"service":"mysql"}]`),
		"secrets/shared":  aSecret(`{}`, `,"grants":[{"relation":-1,"service":"wordpress"}]`),
		// This secret belongs to an earlier service with the same name. A later sweep removes it, since the
		// index does not name it.
		"secrets/former":                         aSecret(`{"service":"wordpress"}`, ``),
		"secrets/credential0000000000":           aSecret(`{}`, ``),
		"secret-contents/own/2":                  `{"key":"k"}`,
		"secret-contents/ours/2":                 `{"key":"k"}`,
		"secret-contents/granted/1":              `{"key":"k"}`,
		"secret-contents/granted/2":              `{"key":"k"}`,
		"secret-contents/revoked/2":              `{"key":"k"}`,
		"secret-contents/theirs/2":               `{"key":"k"}`,
		"secret-contents/shared/2":               `{"key":"k"}`,
		"secret-contents/former/2":               `{"key":"k"}`,
		"secret-contents/credential0000000000/2": `{"key":"k"}`,
		"secret-keys/newest":                     `{}`,

		"storage/data/0":     `{"machine":"1","pool":"rootfs","unit":"wordpress/0","life":"dying","made":true,"state":"attached"}`,
		"storage/data/1":     `{"machine":"2","pool":"rootfs","unit":"mysql/0","life":"dying","made":true,"state":"attached"}`,
		"storage/data/2":     `{"machine":"1","pool":"rootfs","life":"alive","made":true}`,
		"storage/data/3":     `{"machine":"1","pool":"rootfs","life":"dying","made":true}`,
		"machines/1":         `{"series":"trusty","life":"alive","jobs":["host-units"],"instance-id":"i-1","status":"pending","message":"starts","attempts":1,"constraints":{"mem":1}}`,
		"machines/2":         `{"series":"trusty","life":"alive","jobs":["host-units"],"instance-id":"i-2","status":"running"}`,
		"machines/10":        `{"series":"trusty","life":"alive","jobs":["host-units"],"instance-id":"i-10","status":"running"}`,
		"machines/1/storage": `{"all":["data/0","data/2","data/3"]}`, "machines/2/storage": `{"all":["data/1"]}`,
		"machines/1/units/wordpress/0": `{}`, "machines/1/units/logging/0": `{}`, "machines/1/units/blog/0": `{}`,
		"machines/2/units/mysql/0": `{}`, "machines/2/units/wordpress/1": `{}`, "machines/2/units/logging/1": `{}`, "machines/3/units/vault/0": `{}`,
		"spares/1": `{"series":"trusty"}`, "spares/10": `{"series":"trusty"}`, "first-units/1": `{}`, "first-units/2": `{}`,

		"relations/0": relation("global", "wordpress", "mysql"), "relations/1": relation("container", "wordpress", "logging"),
		"relations/2": relation("global", "wordpress"), "relations/3": relation("global", "mysql", "vault"),
		"relations/0/members/wordpress/0": `{"version":1}`, "relations/0/members/wordpress/1": `{"version":1}`, "relations/0/members/mysql/0": `{"version":1}`,
		"relations/1/members/wordpress/0": `{"principal":"wordpress/0","version":1}`, "relations/1/members/logging/0": `{"principal":"wordpress/0","version":1}`,
		"relations/1/members/wordpress/1": `{"principal":"wordpress/1","version":1}`, "relations/1/members/logging/1": `{"principal":"wordpress/1","version":1}`,
		"relations/2/members/wordpress/1": `{"version":1}`, "relations/3/members/mysql/0": `{"version":1}`, "relations/3/members/vault/0": `{"version":1}`,
		"relations/0/settings/wordpress/0": `{"version":1}`, "relations/0/settings/wordpress/1": `{"version":1}`, "relations/0/settings/mysql/0": `{"version":1}`,
		"relations/1/settings/logging/0": `{"version":1}`, "relations/1/settings/logging/1": `{"version":1}`,
		"relations/2/settings/wordpress/1": `{"version":1}`, "relations/3/settings/mysql/0": `{"version":1}`,
		"relations/0/apps/wordpress": `{"version":1}`, "relations/0/apps/mysql": `{"version":1}`,
		"relations/1/apps/logging": `{"version":1}`, "relations/2/apps/wordpress": `{"version":1}`, "relations/3/apps/mysql": `{"version":1}`,

		"uniters/wordpress/0/op": `{"id":"R"}`, "uniters/mysql/0/op": `{"id":"R"}`,
		"uniters/wordpress/0/workflow": `{"state":"started","charm":"local:trusty/wordpress-3"}`, "uniters/mysql/0/workflow": `{}`,
		"uniters/wordpress/0/relations/0": `{}`, "uniters/mysql/0/relations/0": `{}`,
		"uniters/wordpress/0/relations/0/mysql/0": `{}`, "uniters/mysql/0/relations/0/wordpress/0": `{}`,
		"uniters/wordpress/0/services/0/mysql": `{}`, "uniters/mysql/0/services/0/wordpress": `{}`,
		"history/wordpress/0/49": `{"seq":49}`, "history/mysql/0/0": `{"seq":0}`,
		"logs/machine-1": `{"batch":2}`, "logs/machine-2": `{"batch":2}`, "logs/wordpress/0": `{"batch":2}`, "logs/mysql/0": `{"batch":2}`,
		"log/machine-1/0000000002": `{}`, "log/machine-2/0000000002": `{}`, "log/wordpress/0/0000000002": `{"first":1,"lines":[{"message":"done"}]}`, "log/wordpress/0/0000000001": `{}`,
		"log/mysql/0/0000000002": `{}`,

		"counters/machines": `4`, "counters/relations": `4`, "counters/actions": `3`, "counters/storage": `4`, "counters/units/wordpress": `2`, "counters/units/mysql": `2`,

		"requests/wordpress/0/end-0": `{"kind":"end","relation":0}`, "requests/mysql/0/end-0": `{"kind":"end","relation":0}`,

		"blob-heads/" + sumBegun: `{"size":3,"touched":"2026-01-01T00:00:00Z"}`, "blobs/" + sumBegun + "/0000": `abc`,
		"blob-heads/" + sumTrue: `{"size":3,"touched":"2026-01-01T00:00:00Z"}`, "blobs/" + sumTrue + "/0000": `abc`,
		"blob-heads/" + sumDone: `{"size":3,"complete":true,"touched":"2026-01-01T00:00:00Z"}`, "blobs/" + sumDone + "/0000": `abc`,
	}
}

var (
	sumBegun = strings.Repeat("b", 64)
	sumDone  = strings.Repeat("d", 64)

	sumAbsent = strings.Repeat("e", 64)

	sumTrue = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // the sum of abc
	sumXYZ  = "3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282" // the sum of xyz
)

// usual returns the value that the rightful agent would write to the key.
func usual(key, old string) string {
	switch parts := strings.Split(key, "/"); {
	case strings.HasPrefix(key, "claims/"):
		return `{"epoch":9,"holder":{"host":"h1"}}`
	case strings.HasPrefix(key, "counters/"):
		return `5`
	case strings.HasPrefix(key, "leaders/services/"):
		return `{"session":"S1","unit":"` + parts[2] + `/0"}`
	case parts[0] == "machines" && len(parts) == 2:
		old = strings.NewReplacer(`"pending"`, `"running"`, `,"message":"starts","attempts":1`, ``).Replace(old)
		return strings.TrimSuffix(old, "}") + `,"addresses":{"private":"10.0.0.1"},"tools":"1-a"}`
	case parts[0] == "units" && len(parts) == 4 && parts[3] == "secrets":
		return strings.NewReplacer(`"owned":["own"]`, `"owned":[]`, `"granted",`, ``).Replace(old)
	case parts[0] == "units" && len(parts) == 3:
		return strings.TrimSuffix(old, "}") + `,"workload":{"version":"1"}}`
	case parts[0] == "actions":
		return strings.Replace(old, `"running"`, `"completed"`, 1)
	case parts[0] == "history":
		return strings.Replace(old, `"seq":49`, `"seq":99`, 1)
	case parts[0] == "storage":
		return strings.Replace(old, `"attached"`, `"detaching"`, 1)
	case parts[0] == "relations" && len(parts) == 5 && parts[2] == "members":
		return strings.Replace(old, `"version":1`, `"version":2`, 1)
	case parts[0] == "secrets":
		return strings.TrimSuffix(strings.Replace(old, `"wordpress/0":{"revision":1}`, `"wordpress/0":{"revision":2}`, 1), "}") + `}`
	}

	return old // the same value again, so that only the key matters
}
