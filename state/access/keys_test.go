package access

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"bijou/state/keyspace"
)

// examples returns a key, or a prefix, for each name that package keys exports, except for predicates
// and parts of keys.
func examples() map[string]string {
	return map[string]string{
		"Format": "format", "Environment": "environment", "CopyLock": "migrating", "Moved": "moved", "PartialCopy": "migration",
		"Provisioner": "provisioner",
		"Presences":   "presence/", "Claims": "claims/", "Leaders": "leaders/", "Charms": "charms/", "Services": "services/", "Units": "units/",
		"Machines": "machines/", "UnusedMachines": "spares/", "Relations": "relations/", "Uniters": "uniters/", "History": "history/",
		"LogHeads": "logs/", "Actions": "actions/", "Resources": "resources/", "Tools": "tools/", "Secrets": "secrets/",
		"SecretContents": "secret-contents/", "SecretKeys": "secret-keys/", "Storages": "storage/",
		"Counters": "counters/", "MachineCounter": "counters/machines", "RelationCounter": "counters/relations",
		"ActionCounter": "counters/actions", "StorageCounter": "counters/storage", "UnitCounter": "counters/units/mysql",
		"Presence": "presence/unit-my-sql-0", "Claim": "claims/machine-1", "Leader": "leaders/services/mysql",
		"Charm": "charms/local:trusty/mysql-3", "Tool": "tools/1.2-abcdef01",
		"Service": "services/mysql", "BelowService": "services/mysql/", "Config": "services/mysql/config", "ServiceStatus": "services/mysql/status",
		"Upgrade": "services/mysql/upgrade", "LeaderSettings": "services/mysql/leader-settings",
		"ServiceRelations": "services/mysql/relations/", "ServiceRelation": "services/mysql/relations/0", "ServiceSecrets": "services/mysql/secrets",
		"Unit": "units/mysql/0", "ServiceUnits": "units/mysql/", "BelowUnit": "units/mysql/0/", "Ports": "units/mysql/0/ports",
		"ActionQueue": "units/mysql/0/actions", "Action": "actions/0", "ServiceResources": "resources/mysql/", "Resource": "resources/mysql/data",
		"Debug": "units/mysql/0/debug", "UnitSecrets": "units/mysql/0/secrets", "UnitStorage": "units/mysql/0/storage",
		"UnitState": "units/mysql/0/state", "Restored": "units/mysql/0/restored",
		"Secret": "secrets/own", "ContentsOfSecret": "secret-contents/own/", "SecretContent": "secret-contents/own/1",
		"Storage": "storage/data/0", "MachineStorage": "machines/1/storage", "Machine": "machines/1", "UnusedMachine": "spares/1",
		"FirstUnit": "first-units/1", "MachineUnits": "machines/1/units/", "MachineUnit": "machines/1/units/mysql/0",
		"Relation": "relations/0", "Members": "relations/0/members/", "Member": "relations/0/members/mysql/0",
		"ServiceMembers": "relations/0/members/mysql/", "RelationSettings": "relations/0/settings/", "Settings": "relations/0/settings/mysql/0",
		"Apps": "relations/0/apps/", "AppSettings": "relations/0/apps/mysql",
		"ServiceUniters": "uniters/mysql/", "Uniter": "uniters/mysql/0/", "Op": "uniters/mysql/0/op", "Workflow": "uniters/mysql/0/workflow",
		"RelationState": "uniters/mysql/0/relations/0", "MemberState": "uniters/mysql/0/relations/0/wordpress/0",
		"UnitHistory": "history/mysql/0/", "HookRun": "history/mysql/0/49", "LogHead": "logs/mysql/0", "LogBatch": "log/mysql/0/0000000001",
		"ProvisionerLeader": "leaders/provisioner", "UniterRelations": "uniters/mysql/0/relations/", "UniterServices": "uniters/mysql/0/services/",
		"Requests": "requests/", "UnitRequests": "requests/mysql/0/", "Request": "requests/mysql/0/end-0",
		"GatewayLeases": "gateway-leases/", "GatewayLeasesOf": "gateway-leases/machine-1/", "GatewayLease": "gateway-leases/machine-1/7",
	}
}

// moreKeys returns keys for the additional patterns that a name of package keys covers.
func moreKeys() []string {
	return []string{
		"presence/machine-1", "leaders/provisioner", "leaders/else", "machines/1/", "secret-keys/newest", "uniters/mysql/0/services/0/wordpress",
		"logs/machine-1", "log/machine-1/0000000001", keyspace.BlobHeadsPrefix + "00", keyspace.ChunkKey("00", 0),
	}
}

// TestEveryKeyHasARow reads the source of package keys. If a key is new there, the test must fail until the
// table has a row for it. Until then agents have no access to the key.
func TestEveryKeyHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../keys/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}

	known := examples()
	for _, name := range exported(file) {
		switch name {
		case "ServiceLeaderName", "IsOfAgent", "CutInt": // these are not keys
			continue
		}

		key, ok := known[name]
		if !ok {
			t.Errorf("keys.%s is new: who may read and write it? Give it a row in table.go, and an example here", name)
			continue
		}
		if r, _ := find(key); r == nil && !strings.HasSuffix(key, "/") {
			t.Errorf("keys.%s: %q has no row in table.go, so that only operators can use it: say why", name, key)
		}
	}
}

func exported(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				for i := 0; ok && i < len(v.Names); i++ {
					if v.Names[i].IsExported() {
						names = append(names, v.Names[i].Name)
					}
				}
			}
		}
	}
	return names
}

// TestRowsAreOfKeys checks that each row matches a key that no other row matches. The exceptions are the rows
// that match all remaining keys.
func TestRowsAreOfKeys(t *testing.T) {
	all := moreKeys()
	for _, key := range examples() {
		all = append(all, key)
	}

	taken := map[string]bool{}
	for _, key := range all {
		var by []string
		for _, r := range rows() {
			if _, ok := match(r.segments, strings.Split(key, "/")); ok && (len(by) == 0 || r.pattern != "leaders/{rest}") {
				by = append(by, r.pattern)
			}
		}
		if len(by) > 1 {
			t.Errorf("%q is taken by %q", key, by)
		}
		for _, pattern := range by {
			taken[pattern] = true
		}
	}

	for _, r := range rows() {
		if !taken[r.pattern] {
			t.Errorf("no key is known of %q", r.pattern)
		}
		if r.why == "" {
			t.Errorf("%q has no reason", r.pattern)
		}
		if (r.put != nil || r.lease != nil) != (r.max > 0) {
			t.Errorf("%q has a size without a writer, or a writer without a size", r.pattern)
		}
	}
}

func TestPatternsRefuse(t *testing.T) {
	for _, key := range []string{
		"", "/", "units", "units/mysql", "units/mysql/00", "units/mysql/-1", "units/mysql/0/else", "units//0", "relations/01", "relations/x",
		"presence/unit-0", "presence/unit--0", "presence/unit-a/b-0", "relations/0/settings/mysql", "log/mysql/0/x", "uniters/mysql/0/op/", "formats",
		"else", "storage/data", "leaders/", "charms/",
	} {
		t.Run(key, func(t *testing.T) {
			if r, v := find(key); r != nil {
				t.Errorf("%q takes it, with %v", r.pattern, v)
			}
		})
	}
}
