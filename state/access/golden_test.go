package access

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/secret"
)

var update = flag.Bool("update", false, "rewrite testdata/attacker.txt")

// TestAttacker lists all operations that an attacker with machine 1's certificate can carry out, and compares
// the list with the file. Each line of the file is a promise. The message of a commit that changes a line
// must give the reason. This updates the file: go test ./state/access -update
func TestAttacker(t *testing.T) {
	got := attackerTable()
	if *update {
		if err := os.WriteFile("testdata/attacker.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile("testdata/attacker.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the rights have changed; if that is intended: go test ./state/access -update\n%s", diff)
	}
}

func attackerTable() string {
	var b strings.Builder
	w := newWorld()
	b.WriteString(preface)

	b.WriteString("\n== Every key, by pattern ==\n")
	writeKeys(&b, w)
	b.WriteString("\n== Prefixes that can be listed or watched, which show only the keys that can be read ==\n")
	writePrefixes(&b, w)
	b.WriteString("\n== Keys that do not exist yet ==\n")
	writeValues(&b, w.with(world{"secrets/" + secret.CredentialID: "", "leaders/services/logging": ""}), newKeys())
	b.WriteString("\n== Changes of existing values ==\n")
	writeValues(&b, w, newValues(w))
	b.WriteString("\n== Values of a different shape that a put of the machine's own keys accepts ==\n")
	writeShapes(&b, w)
	b.WriteString("\n== After the removal of relation 1, which held logging/0 to its principal ==\n")
	free := w.with(world{"relations/1": "", "services/wordpress/relations/1": "", "services/logging/relations/1": ""})
	writeValues(&b, free, []attempt{{"units/logging/0", "life alive to dying, of a subordinate", strings.Replace(w["units/logging/0"], alive, dying, 1)}})
	b.WriteString("\n== Commits: several writes at once ==\n")
	writeCommits(&b, w)
	b.WriteString("\n== A classic charm on machine 1, which explores the topology, can also read these keys ==\n")
	writeGains(&b, w, w.with(world{"services/blog": strings.Replace(w["services/blog"], "modern", "classic", 1)}))
	before := w.with(world{"charms/local:trusty/wordpress-2": `{"sha256":"w2","dialect":"classic"}`})
	older := before.with(world{"units/wordpress/0": strings.Replace(w["units/wordpress/0"], "wordpress-3", "wordpress-2", 1)})
	b.WriteString("\n== A unit that claims to run an older, classic revision of its charm can also read these keys ==\n")
	writeGains(&b, before, older)
	b.WriteString("\n== After an upgrade from that revision, which the unit has not followed, it can also read these keys ==\n")
	writeGains(&b, before, older.with(world{"services/wordpress/upgrade": `{"charm":"local:trusty/wordpress-3","before":"local:trusty/wordpress-2"}`}))
	b.WriteString("\n== A trusted application on machine 1 can also read these keys ==\n")
	writeGains(&b, w, w.with(world{"services/blog": strings.TrimSuffix(w["services/blog"], "}") + `,"trusted":true}`}))
	b.WriteString("\n== After the removal of relation 0, machine 1 can no longer read these keys ==\n")
	writeGains(&b, w.with(world{"relations/0": "", "services/wordpress/relations/0": "", "services/mysql/relations/0": ""}), w)

	last := w.with(world{})
	for _, unit := range []string{"wordpress/0", "logging/0", "blog/0"} {
		last["units/"+unit] = strings.NewReplacer(alive, dead, dying, dead).Replace(w["units/"+unit])
	}
	b.WriteString("\n== After the death of its units, machine 1 can no longer read these keys ==\n")
	writeGains(&b, last, w)
	b.WriteString("\n== After the death of its units, machine 1 can still write these keys ==\n")
	writeWrites(&b, last)
	b.WriteString("\n== After its own death and the removal of its units, machine 1 can still write these keys ==\n")
	writeWrites(&b, w.with(world{
		"machines/1": strings.Replace(w["machines/1"], alive, dead, 1), "units/wordpress/0": "", "units/logging/0": "", "units/blog/0": "",
	}))

	return b.String()
}

// writeWrites lists the values that the rightful agent would write, if the table allows them.
func writeWrites(b *strings.Builder, w world) {
	for _, key := range slices.Sorted(maps.Keys(w)) {
		var ops []string
		for _, op := range []Op{Put, Delete, Lease} {
			if ask1(w, op, key, w[key], usual(key, w[key])) == nil {
				ops = append(ops, string(op))
			}
		}
		if len(ops) > 0 {
			fmt.Fprintf(b, "  %-52s %s\n", abbreviate(key), strings.Join(ops, " "))
		}
	}
}

const preface = `# The rights of the agents of machine 1, as somebody with root access to this machine could use them. state/access
# decides about them, and its test writes this file: go test ./state/access -update
#
# Machine 1 has wordpress/0 (the leader of its application), logging/0 (its subordinate) and blog/0 (dying). Machine 2
# has wordpress/1, logging/1 and mysql/0. Machine 3 has vault/0. Relation 0 is between wordpress and mysql, 1 between
# wordpress and logging (container scope), 2 among the peers of wordpress, and 3 between mysql and vault. The owner of
# the secret "own" is wordpress/0, and that of "ours" is the application wordpress. The secret "granted" is granted to
# wordpress, "revoked" was revoked from it, and "theirs" is between mysql and vault. Operators share "shared" with
# wordpress. "former" belongs to a removed application with the name wordpress. Storage data/0 (of wordpress/0), data/2
# and data/3 (dying) are on machine 1.
#
# A put writes the value that the rightful agent would write. A dot is a refusal.
`

func writeKeys(b *strings.Builder, w world) {
	all := slices.Sorted(maps.Keys(w))
	for _, r := range rows() {
		var lines []string
		for _, key := range all {
			if found, _ := find(key); found != r {
				continue
			}

			line := fmt.Sprintf("  %-52s", abbreviate(key))
			for _, op := range Ops() {
				line += fmt.Sprintf(" %-6s", mark(ask1(w, op, key, w[key], usual(key, w[key])), string(op)))
			}
			lines = append(lines, strings.TrimRight(line, " "))
		}

		if len(lines) > 0 {
			fmt.Fprintf(b, "\n%s  -- %s\n%s\n", r.pattern, r.why, strings.Join(lines, "\n"))
		}
	}
}

func abbreviate(key string) string {
	return strings.NewReplacer("\n", `\n`, idMine, "MINE", sumBegun, "BEGUN", sumDone, "COMPLETE", sumAbsent, "ABSENT", sumTrue, "TRUE").Replace(key)
}

func mark(err error, word string) string {
	if err != nil {
		return "."
	}
	return word
}

func ask1(w world, op Op, key, old, new string) error {
	bytesOf := func(value string) []byte {
		if value == "" {
			return nil
		}
		return []byte(value)
	}

	p := NewPlacement(w)
	switch op {
	case Put, Lease:
		return May(Agent("1"), p, op, key, bytesOf(old), bytesOf(new))
	case Get, Delete:
		return May(Agent("1"), p, op, key, bytesOf(old), nil)
	}
	return May(Agent("1"), p, op, key, nil, nil)
}

func writePrefixes(b *strings.Builder, w world) {
	seen := map[string]bool{"": true}
	for key := range w {
		for i := range key {
			if key[i] == '/' {
				seen[key[:i+1]] = true
			}
		}
	}

	for _, prefix := range slices.Sorted(maps.Keys(seen)) {
		list, watch := ask1(w, List, prefix, "", ""), ask1(w, Watch, prefix, "", "")
		if list == nil || watch == nil {
			fmt.Fprintf(b, "  %-52s %-6s %s\n", prefix, mark(list, "list"), mark(watch, "watch"))
		}
	}
	b.WriteString("  and no others\n")
}

type attempt struct {
	key, what, value string
}

func writeValues(b *strings.Builder, w world, all []attempt) {
	for _, a := range all {
		op := Put
		if r, _ := find(a.key); r != nil && r.lease != nil {
			op = Lease
		}
		fmt.Fprintf(b, "  %-34s %-62s %s\n", abbreviate(a.key), a.what, verdict(ask1(w, op, a.key, w[a.key], a.value)))
	}
}

func verdict(err error) string {
	switch {
	case err == nil:
		return "ALLOWED"
	case errors.Is(err, ErrRefused):
		return "refused"
	}
	return err.Error()
}

// idMine is the id of a secret that machine 1 creates.
const idMine = "mine0000000000000000"

func newKeys() []attempt {
	return []attempt{
		{"units/wordpress/2", "a unit on machine 1 that nobody has added", `{"machine":"1","life":"alive"}`},
		{"machines/1/units/mysql/0", "mysql/0 claimed for machine 1", `{}`},
		{"machines/4", "a machine", `{"series":"trusty"}`},
		{"services/mine", "a service", `{}`},
		{"relations/4", "a relation", `{"endpoints":[{"service":"wordpress"},{"service":"vault"}]}`},
		{"relations/3/members/wordpress/0", "membership of a relation that is not its service's", `{"version":1}`},
		{"relations/3/settings/wordpress/0", "settings in a relation that is not its service's", `{"version":1}`},
		{"relations/2/members/wordpress/0", "membership of its peer relation", `{"version":1}`},
		{"relations/2/members/wordpress/0", "membership in the name of another's principal", `{"principal":"wordpress/1","version":1}`},
		{"relations/2/settings/wordpress/0", "settings in its peer relation", `{"version":1}`},
		{"relations/0/members/blog/0", "membership by a unit of a service that is no part of it", `{"version":1}`},
		{"actions/3", "an action of its charm", `{"unit":"wordpress/0","name":"backup","status":"pending"}`},
		{"actions/3", "a command for its own unit, without taking a number", `{"unit":"wordpress/0","command":["ls"],"status":"pending"}`},
		{"actions/3", "a command for another machine's unit", `{"unit":"mysql/0","command":["ls"],"status":"pending"}`},
		{"storage/data/4", "storage of its unit, without taking a number", `{"machine":"1","unit":"wordpress/0","life":"alive","state":"pending"}`},
		{"storage/data/4", "storage on another machine", `{"machine":"2","unit":"wordpress/0","life":"alive","state":"pending"}`},
		{"storage/data/4", "storage of another's unit", `{"machine":"1","unit":"mysql/0","life":"alive","state":"pending"}`},
		{"secrets/" + idMine, "a secret of its unit", `{"owner":{"unit":"wordpress/0"}}`},
		{"secrets/" + idMine, "a secret of its unit, with another's unit named as its reader", `{"owner":{"unit":"wordpress/0"},"consumers":{"vault/0":{"revision":1}}}`},
		{"secrets/" + idMine, "a secret of its service, which it leads", `{"owner":{"service":"wordpress"}}`},
		{"secrets/" + idMine, "a secret of a service that it does not lead", `{"owner":{"service":"logging"}}`},
		{"secrets/" + idMine, "a secret of another's unit", `{"owner":{"unit":"mysql/0"}}`},
		{"secrets/" + idMine, "a secret of the operators", `{"owner":{}}`},
		{"secrets/mine", "a secret whose id is no secret's", `{"owner":{"unit":"wordpress/0"}}`},
		{"secrets/" + secret.CredentialID, "the operators' credential, where there is none", `{"owner":{"unit":"wordpress/0"}}`},
		{"secret-contents/own/7", "content of a revision that its secret has not", `{"key":"k"}`},
		{"secret-contents/granted/3", "content of another's secret", `{"key":"k"}`},
		{"leaders/services/blog", "its unit leads, which is dying", `{"session":"S1","unit":"blog/0"}`},
		{"leaders/services/logging", "its unit leads", `{"session":"S1","unit":"logging/0"}`},
		{"leaders/services/vault", "its unit leads another service", `{"session":"S1","unit":"wordpress/0"}`},
		{"leaders/services/vault", "another's unit leads", `{"session":"S1","unit":"vault/0"}`},
		{"presence/unit-vault-0", "another's unit is present", `{"session":"S1"}`},
		{"history/wordpress/0/0", "its next hook", `{"seq":50}`},
		{"history/wordpress/0/0", "a hook in the place of another", `{"seq":51}`},
		{"history/wordpress/0/0", "a hook before the first", `{"seq":-50}`},
		{"history/wordpress/0/50", "a hook in a place that there is not", `{"seq":50}`},
		{"log/wordpress/0/0000000003", "the next batch of its log", `{}`},
		{"log/wordpress/0/0000000009", "a batch of its log out of turn", `{}`},
		{"log/wordpress/0/3", "a batch of its log by another name", `{}`},
		{"requests/blog/0/remove", "its unit asks for its removal", `{"kind":"remove","relation":-1}`},
		{"requests/blog/0/remove", "its unit asks for something else than the key says", `{"kind":"end","relation":0}`},
		{"requests/wordpress/0/end-0", "its unit asks for the end of its relation", `{"kind":"end","relation":0}`},
		{"requests/wordpress/0/end-0", "its unit asks for the end of another than the key says", `{"kind":"end","relation":3}`},
		{"requests/wordpress/0/end-3", "its unit asks for the end of others' relation", `{"kind":"end","relation":3}`},
		{"requests/wordpress/0/else-0", "its unit asks for what there is not", `{}`},
		{"requests/vault/0/remove", "another's unit asks for its removal", `{"kind":"remove","relation":-1}`},
		{"uniters/wordpress/0/relations/2", "a relation of its application", `{"state":"start"}`},
		{"uniters/wordpress/0/relations/3", "a relation of others", `{"state":"start"}`},
		{"uniters/wordpress/0/relations/9", "a relation that is not there", `{"state":"start"}`},
		{"uniters/wordpress/0/relations/0/wordpress/1", "a unit of a relation of its application", `{"state":"joined"}`},
		{"uniters/wordpress/0/relations/0/mysql/1", "a unit that has been removed", `{"state":"joined"}`},
		{"uniters/wordpress/0/relations/0/mysql/2", "a unit that there never was", `{"state":"joined"}`},
		{"uniters/wordpress/0/relations/0/vault/0", "a unit that is not in the relation", `{"state":"joined"}`},
		{"uniters/wordpress/0/relations/3/mysql/0", "a unit of a relation of others", `{"state":"joined"}`},
		{"uniters/wordpress/0/services/0/wordpress", "an application in the relation", `{"state":"joined"}`},
		{"uniters/wordpress/0/services/0/vault", "an application that is not in the relation", `{"state":"joined"}`},
		{"blob-heads/" + sumAbsent, "a blob begun", `{"size":3}`},
		{"blob-heads/" + sumAbsent, "a blob complete at once", `{"size":3,"complete":true}`},
		{"blob-heads/" + sumAbsent, "a blob larger than any", `{"size":9007199254740993}`},
		{"blob-heads/short", "a blob whose name is no sum", `{"size":3}`},
		{"blobs/" + sumAbsent + "/0000", "a chunk of a blob that is not begun", `abc`},
		{"blobs/" + sumBegun + "/0001", "a chunk beyond a blob's end", `abc`},
		{"blobs/" + sumBegun + "/17592186044416", "a chunk whose offset does not fit in 64 bits", `abc`},
		{"anything", "a key of its own", `{}`},
		{"uniters/wordpress/0/relations/0/my\nsql/0", "a key that no backup can have", `{}`},
	}
}

func newValues(w world) (all []attempt) {
	change := func(key, what, old, new string) {
		if !strings.Contains(w[key], old) {
			panic(key + " has no " + old)
		}
		all = append(all, attempt{key, what, strings.Replace(w[key], old, new, 1)})
	}

	m := "machines/1"
	change(m, "instance id", `"i-1"`, `"i-2"`)
	change(m, "life alive to dying", `"alive"`, `"dying"`)
	change(m, "life alive to dead", `"alive"`, `"dead"`)
	change(m, "jobs: to manage the environment", `"host-units"`, `"manage-environment"`)
	change(m, "constraints", `"mem":1`, `"mem":9`)
	change(m, "series", `"trusty"`, `"jammy"`)
	change(m, "status running", `"pending"`, `"running"`)
	change(m, "status error, for the provisioner to act on", `"pending"`, `"error"`)
	change(m, "attempts raised", `"attempts":1`, `"attempts":7`)
	change(m, "message cleared", `,"message":"starts"`, ``)
	change(m, "addresses and binary", `"series"`, `"tools":"1-a","addresses":{"private":"10.0.0.9"},"series"`)
	change(m, "an address of IP version 6 and a host's name", `"series"`, `"addresses":{"private":"fd00::1","public":"db.example.com"},"series"`)
	change(m, "an address that is an option of ssh", `"series"`, `"addresses":{"private":"-oProxyCommand=x"},"series"`)
	change(m, "an address that is more than one word", `"series"`, `"addresses":{"public":"10.0.0.9 root@10.0.0.1"},"series"`)
	change(m, "a binary whose name is none", `"series"`, `"tools":"../1-a","series"`)
	change(m, "instance id once more, in other letters", `"series"`, `"Instance-ID":"i-2","series"`)
	change(m, "a member that no binary knows", `"series"`, `"new":1,"series"`)
	all = append(all, attempt{m, "no object", `[]`}, attempt{m, "too long", `{"message":"` + strings.Repeat("x", medium) + `"}`})
	change("machines/2", "another machine's status", `"running"`, `"error"`)

	u := "units/wordpress/0"
	change(u, "machine", `"machine":"1"`, `"machine":"2"`)
	change(u, "charm: a revision that its service had or gets", `wordpress-3`, `wordpress-4`)
	change(u, "charm: one that is not there", `wordpress-3`, `wordpress-9`)
	change(u, "charm: another's", `wordpress-3`, `mysql-1`)
	change(u, "life alive to dying, of a principal", `"alive"`, `"dying"`)
	change(u, "life alive to dead", `"alive"`, `"dead"`)
	change(u, "principal", `"life"`, `"principal":"mysql/0","life"`)
	change(u, "subordinates", `"logging/0"`, `"logging/1"`)
	change(u, "constraints", `"life"`, `"constraints":{"mem":9},"life"`)
	change(u, "resolved cleared", `"resolved":"retry",`, ``)
	change(u, "resolved changed", `"retry"`, `"done"`)
	change(u, "resolved of a relation cleared", `"0":"done"`, ``)
	change(u, "resolved of a relation changed", `"0":"done"`, `"0":"retry"`)
	change(u, "interrupt", `"interrupt":"R"`, `"interrupt":""`)
	change(u, "status", `"status":"active"`, `"status":"blocked"`)
	change(u, "active with its charm", `"life"`, `"active-with":"local:trusty/wordpress-3","life"`)
	change(u, "active with another charm", `"life"`, `"active-with":"local:trusty/wordpress-2","life"`)
	change("units/blog/0", "life dying to dead", `"dying"`, `"dead"`)
	change("units/blog/0", "life dying to alive", `"dying"`, `"alive"`)
	change("units/logging/0", "life alive to dying, of a subordinate", `"alive"`, `"dying"`)
	change("units/logging/0", "principal", `"wordpress/0"`, `"wordpress/1"`)
	change("units/mysql/0", "another's life", `"alive"`, `"dying"`)
	change("services/wordpress", "charm", `wordpress-3`, `wordpress-4`)
	change("services/wordpress", "trusted", `"life"`, `"trusted":true,"life"`)
	change("environment", "which binary agents run", `1-a`, `2-b`)

	change("claims/machine-1", "epoch that grows", `3`, `4`)
	change("claims/machine-1", "epoch after which there is no next", `3`, `9223372036854775807`)
	change("claims/machine-1", "epoch that stays", `"h1"`, `"h9"`)
	change("claims/machine-1", "epoch that falls", `3`, `2`)
	change("claims/machine-2", "epoch of another machine", `5`, `6`)
	change("leaders/services/wordpress", "leader: another unit of machine 1 and another service", `wordpress/0`, `blog/0`)
	change("leaders/services/wordpress", "leader: a unit of another machine", `wordpress/0`, `wordpress/1`)
	change("leaders/services/logging", "leader: taken from a unit of another machine", `logging/1`, `logging/0`)

	s := "secrets/own"
	change(s, "owner: to another", `"wordpress/0"`, `"mysql/0"`)
	change(s, "owner: to its service", `"unit":"wordpress/0"`, `"service":"wordpress"`)
	change(s, "label, of its own", `"latest"`, `"label":"x","latest"`)
	change(s, "another's unit named as its reader", `"mysql/0":{"revision":1}`, `"mysql/0":{"revision":1},"vault/0":{"revision":1}`)
	change(s, "a reader on another machine forgotten, of its own", `"mysql/0":{"revision":1}`, ``)
	change("secrets/ours", "its own unit forgotten as a reader, of its own", `"wordpress/0":{"revision":1}`, ``)
	change(s, "a grant, of its own", `"latest"`, `"grants":[{"relation":0,"service":"mysql"}],"latest"`)
	change(s, "a grant, of its own, without a relation", `"latest"`, `"grants":[{"relation":-1,"service":"mysql"}],"latest"`)
	change(s, "a grant, of its own, in a relation of others", `"latest"`, `"grants":[{"relation":3,"service":"mysql"}],"latest"`)
	change(s, "a grant, of its own, in a relation that is still to come", `"latest"`, `"grants":[{"relation":900,"service":"mysql"}],"latest"`)
	change(s, "a grant, of its own, to a service that is not in the relation", `"latest"`, `"grants":[{"relation":0,"service":"vault"}],"latest"`)
	change("secrets/granted", "owner: taken", `"unit":"mysql/0"`, `"unit":"wordpress/0"`)
	change("secrets/granted", "a grant of another's", `"relation":0`, `"relation":1`)
	change("secrets/granted", "its own reading noted", `"wordpress/0":{"revision":1}`, `"wordpress/0":{"revision":2}`)
	change("secrets/granted", "its own reading noted, with a label that fills the record", `"wordpress/0":{"revision":1}`, `"wordpress/0":{"revision":2,"label":"`+strings.Repeat("x", 2<<10)+`"}`)
	change("secrets/granted", "another's reading noted", `"consumers":{`, `"consumers":{"vault/0":{"revision":1},`)
	change("secrets/granted", "a revision removed that it reads", `"1":{"created":"2026-01-01T00:00:00Z"},`, ``)
	change("secrets/granted", "latest", `"latest":2`, `"latest":3`)
	change("secrets/theirs", "its reading noted, of what was never granted", `"latest"`, `"consumers":{"wordpress/0":{"revision":1}},"latest"`)
	change("secrets/shared", "a grant of the operators'", `"relation":-1`, `"relation":0`)
	change("services/wordpress/secrets", "granted by itself", `"shared"`, `"credential0000000000"`)
	change("services/wordpress/secrets", "owned: a secret of a service of that name before", `"ours"`, `"ours","former"`)
	change("units/wordpress/0/secrets", "owned: another's secret", `"own"`, `"own","theirs"`)
	change("units/mysql/0/secrets", "another's list", `"own"`, ``)

	for _, key := range []string{"relations/0/settings/wordpress/0", "relations/0/apps/wordpress", "services/wordpress/leader-settings", "units/wordpress/0/state"} {
		all = append(all, attempt{key, "a blob that is complete", `{"version":2,"blob":"` + sumDone + `"}`})
		all = append(all, attempt{key, "a blob that is not there", `{"version":2,"blob":"` + sumAbsent + `"}`})
	}
	all = append(all, attempt{"secret-contents/own/2", "a blob that is not complete", `{"key":"k","blob":"` + sumBegun + `"}`})
	change("actions/0", "an output that is a blob which is not complete", `"running"`, `"completed","output":{"blob":"`+sumBegun+`"}`)
	change("actions/0", "status", `"running"`, `"failed"`)
	change("actions/0", "what is asked for", `"backup"`, `"restore"`)
	change("actions/0", "whose it is", `wordpress/0`, `mysql/0`)
	change("actions/2", "status, back to pending", `"completed"`, `"pending"`)
	change("units/wordpress/0/actions", "another's action among those that wait", `0`, `0,1`)
	change("units/wordpress/0/actions", "another's action among those that have ended", `]`, `],"ended":[1]`)
	change("units/wordpress/0/actions", "an action that is not there among those that have ended", `]`, `],"ended":[7]`)
	change("units/wordpress/0/actions", "an action of its own, ended", `[0]`, `[],"ended":[0]`)
	change("units/wordpress/0/actions", "another's action to cancel", `]`, `],"cancel":[1]`)
	change("storage/data/0", "machine", `"machine":"1"`, `"machine":"2"`)
	change("storage/data/0", "unit: given back, and the unit's list still has it", `"unit":"wordpress/0",`, ``)
	change("storage/data/0", "unit: to another", `"wordpress/0"`, `"blog/0"`)
	change("storage/data/0", "life", `"dying"`, `"alive"`)
	change("storage/data/0", "made: taken back, so that it may go", `"made":true`, `"made":false`)
	change("machines/1/storage", "another's storage in its list", `"data/0"`, `"data/0","data/1"`)
	change("machines/1/storage", "storage that is not there yet in its list", `"data/0"`, `"data/0","data/9"`)
	change("machines/1/storage", "storage that is there left out of its list", `,"data/2"`, ``)
	change("units/wordpress/0/storage", "storage that the unit has left out of its list", `"data/0"`, ``)
	change("units/wordpress/0/storage", "another's storage in its list", `"data/0"`, `"data/0","data/1"`)
	change("relations/1/members/wordpress/0", "principal", `"principal":"wordpress/0"`, `"principal":"wordpress/1"`)
	change("counters/storage", "one more", `4`, `5`)
	change("counters/storage", "fewer", `4`, `1`)
	change("counters/storage", "thousands more", `4`, `9999`)
	change("counters/actions", "one more", `3`, `4`)
	w0 := "uniters/wordpress/0/workflow"
	change(w0, "that another hook is done", `"started"`, `"stopped"`)
	change(w0, "that no charm was installed", `,"charm":"local:trusty/wordpress-3"`, ``)
	change(w0, "that nothing has begun", `"started"`, `""`)
	change("log/wordpress/0/0000000002", "a line more", `}]`, `},{"message":"more"}]`)
	change("log/wordpress/0/0000000002", "a line less", `{"message":"done"}`, ``)
	change("log/wordpress/0/0000000002", "another line in place of one", `done`, `nothing`)
	change("logs/wordpress/0", "the next batch", `2`, `3`)
	change("logs/wordpress/0", "a batch out of turn", `2`, `9`)
	change("counters/machines", "one more", `4`, `5`)
	change("history/wordpress/0/49", "the same hook, told otherwise", `"seq":49`, `"seq":49,"failure":"x"`)
	change("history/wordpress/0/49", "an earlier hook", `"seq":49`, `"seq":-1`)
	change("history/wordpress/0/49", "the hook after a number was left out", `"seq":49`, `"seq":149`)
	change("history/wordpress/0/49", "a later hook in the place of another", `"seq":49`, `"seq":98`)
	change("blob-heads/"+sumBegun, "completed", `"size":3`, `"size":3,"complete":true`)
	change("blob-heads/"+sumBegun, "another size", `"size":3`, `"size":4`)
	change("blob-heads/"+sumTrue, "completed, with the bytes there", `"size":3`, `"size":3,"complete":true`)
	change("blob-heads/"+sumTrue, "completed, with another size", `"size":3`, `"size":4,"complete":true`)
	change("blob-heads/"+sumDone, "another size, of what is complete", `"size":3`, `"size":4`)
	change("blob-heads/"+sumDone, "touched", `2026-01-01`, `2026-02-02`)
	change("blob-heads/"+sumDone, "not complete any more", `"complete":true,`, ``)
	change("blobs/"+sumBegun+"/0000", "other bytes, of what is not complete", `abc`, `xyz`)
	change("blobs/"+sumDone+"/0000", "the same bytes, of what is complete", `abc`, `abc`)
	change("blobs/"+sumDone+"/0000", "other bytes, of what is complete", `abc`, `xyz`)
	return all
}

func writeCommits(b *strings.Builder, w world) {
	put := func(key, value string) Write { return Write{Key: key, Value: []byte(value)} }
	change := func(key, old, new string) Write { return put(key, strings.Replace(w[key], old, new, 1)) }

	for _, c := range []struct {
		what   string
		writes []Write
	}{
		{"storage that a hook adds, with the lists that name it", []Write{
			put("storage/data/4", `{"machine":"1","unit":"wordpress/0","life":"alive","state":"pending"}`), put("counters/storage", `5`),
			change("machines/1/storage", `"data/0"`, `"data/0","data/4"`), change("units/wordpress/0/storage", `"data/0"`, `"data/0","data/4"`),
		}},
		{"storage that a hook adds, without the lists that name it", []Write{
			put("storage/data/4", `{"machine":"1","unit":"wordpress/0","life":"alive","state":"pending"}`), put("counters/storage", `5`),
		}},
		{"storage that a hook adds, which only its unit's list names", []Write{
			put("storage/data/4", `{"machine":"1","unit":"wordpress/0","life":"alive","state":"pending"}`), put("counters/storage", `5`),
			change("units/wordpress/0/storage", `"data/0"`, `"data/0","data/4"`),
		}},
		{"storage given back, with the list of its unit", []Write{
			change("storage/data/0", `"unit":"wordpress/0",`, ``), {Key: "units/wordpress/0/storage", Delete: true},
		}},
		{"storage that goes removed, with the list of its machine", []Write{
			{Key: "storage/data/3", Delete: true}, change("machines/1/storage", `,"data/3"`, ``),
		}},
		{"storage that goes removed, which the list of its machine still names", []Write{
			{Key: "storage/data/3", Delete: true}, change("machines/1/storage", `"data/0",`, ``),
		}},
		{"a command that a program asks its unit for, with the next number", []Write{
			put("actions/3", `{"unit":"wordpress/0","command":["ls"],"status":"pending"}`), put("counters/actions", `4`),
			change("units/wordpress/0/actions", `0`, `0,3`),
		}},
		{"a command with a number that is none of those that come next", []Write{
			put("actions/9", `{"unit":"wordpress/0","command":["ls"],"status":"pending"}`), put("counters/actions", `4`),
		}},
		{"a number taken for nothing", []Write{put("counters/actions", `4`)}},
		{"a secret that a hook makes, with its content and the list of its unit", []Write{
			put("secrets/"+idMine, `{"owner":{"unit":"wordpress/0"},"latest":1,"revisions":{"1":{"created":"2026-01-01T00:00:00Z"}}}`),
			put("secret-contents/"+idMine+"/1", `{}`),
			change("units/wordpress/0/secrets", `"own"`, `"own","`+idMine+`"`),
		}},
		{"a secret that a leader makes, with its content and the list of its service", []Write{
			put("secrets/"+idMine, `{"owner":{"service":"wordpress"},"latest":1,"revisions":{"1":{"created":"2026-01-01T00:00:00Z"}}}`),
			put("secret-contents/"+idMine+"/1", `{}`),
			change("services/wordpress/secrets", `"ours"`, `"ours","`+idMine+`"`),
		}},
		{"a secret of its unit in the list of its service", []Write{
			put("secrets/"+idMine, `{"owner":{"unit":"wordpress/0"}}`), change("services/wordpress/secrets", `"ours"`, `"ours","`+idMine+`"`),
		}},
		{"its own secret removed, also from the list of a reader", []Write{
			{Key: "secrets/own", Delete: true}, {Key: "secret-contents/own/2", Delete: true},
			change("units/wordpress/0/secrets", `"own"`, ``), change("units/mysql/0/secrets", `"consumed":["own"]`, `"consumed":[]`),
		}},
		{"its own secret removed, and another's from the list of its owner", []Write{
			{Key: "secrets/own", Delete: true}, change("units/mysql/0/secrets", `"granted",`, ``),
		}},
		{"a newer revision read of a granted secret, and the one before pruned with its content", []Write{
			put("secrets/granted", strings.NewReplacer(`"wordpress/0":{"revision":1}`, `"wordpress/0":{"revision":2}`,
				`"1":{"created":"2026-01-01T00:00:00Z"},`, ``).Replace(w["secrets/granted"])),
			{Key: "secret-contents/granted/1", Delete: true},
		}},
		{"the newest content of a granted secret removed", []Write{
			put("secrets/granted", w["secrets/granted"]), {Key: "secret-contents/granted/2", Delete: true},
		}},
		{"a granted secret listed as read that its record does not say so", []Write{
			change("units/wordpress/0/secrets", `"granted"`, `"granted","shared"`),
		}},
		{"a relation entered with the settings", []Write{
			put("relations/2/members/wordpress/0", `{"version":1}`), put("relations/2/settings/wordpress/0", `{"version":1}`),
		}},
		{"settings in a blob that the same commit completes", []Write{
			put("relations/0/settings/wordpress/0", `{"version":2,"blob":"`+sumTrue+`"}`),
			change("blob-heads/"+sumTrue, `"size":3`, `"size":3,"complete":true`),
		}},
		{"a relation left, which asks the provisioner to end it", []Write{
			{Key: "relations/0/members/wordpress/0", Delete: true}, put("requests/wordpress/0/end-0", `{"kind":"end","relation":0}`),
		}},
		{"a relation left, and ended with the others' settings", []Write{
			{Key: "relations/0/members/wordpress/0", Delete: true}, {Key: "relations/0", Delete: true},
			{Key: "relations/0/settings/mysql/0", Delete: true},
		}},
		{"a unit that is dying: dead, with the request to remove it", []Write{
			change("units/blog/0", `"dying"`, `"dead"`), put("requests/blog/0/remove", `{"kind":"remove","relation":-1}`),
		}},
		{"a blob begun and completed", []Write{put("blob-heads/"+sumAbsent, `{"size":3,"complete":true,"touched":"2026-01-01T00:00:00Z"}`), put("blobs/"+sumAbsent+"/0000", "xyz")}},
		{"a blob begun and completed, with the bytes of its sum", []Write{put("blob-heads/"+sumXYZ, `{"size":3,"complete":true,"touched":"2026-01-01T00:00:00Z"}`), put("blobs/"+sumXYZ+"/0000", "xyz")}},
		{"a blob completed with other bytes than those there", []Write{change("blob-heads/"+sumTrue, `"size":3`, `"size":3,"complete":true`), put("blobs/"+sumTrue+"/0000", "xyz")}},
		{"a chunk of a blob, of which no watcher is told", []Write{{Key: "blobs/" + sumTrue + "/0000", Value: []byte("abc"), Quiet: true}}},
		{"its ports, of which no watcher is told", []Write{{Key: "units/wordpress/0/ports", Value: []byte("[]"), Quiet: true}}},
		{"its ports removed, of which no watcher is told", []Write{{Key: "units/wordpress/0/ports", Delete: true, Quiet: true}}},
		{"its own secret removed, and the list of a reader filled with another", []Write{
			{Key: "secrets/own", Delete: true}, change("units/wordpress/0/secrets", `"own"`, ``),
			change("units/mysql/0/secrets", `["granted","revoked"],"consumed":["own"]`, `["granted","revoked"],"consumed":["own","own"]`),
		}},
		{"a batch of a log removed that is not the oldest, with the next", []Write{
			put("logs/machine-1", `{"batch":3}`), put("log/machine-1/0000000003", `{}`), {Key: "log/machine-1/0000000002", Delete: true},
		}},
	} {
		fmt.Fprintf(b, "  %-97s %s\n", c.what, verdict(MayCommit(Agent("1"), NewPlacement(w), c.writes)))
	}
}

// writeShapes lists the values of a wrong shape that machine 1 can write under its keys.
func writeShapes(b *strings.Builder, w world) {
	patterns := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		r, _ := find(key)
		if r == nil || r.put == nil && r.lease == nil || patterns[r.pattern] {
			continue
		}
		op := Put
		if r.lease != nil {
			op = Lease
		}
		if ask1(w, op, key, w[key], usual(key, w[key])) != nil {
			continue
		}

		patterns[r.pattern] = true
		var taken []string
		for _, value := range []string{`x`, ` `, `null`, `"text"`, `[]`, `[{}]`, `{}`, `7`, `-1.5`, usual(key, w[key]) + `{}`} {
			if ask1(w, op, key, w[key], value) == nil {
				taken = append(taken, value)
			}
		}
		fmt.Fprintf(b, "  %-48s %s\n", r.pattern, orNone(strings.Join(taken, "  ")))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// writeGains lists the keys that machine 1 can read in the second world but not in the first.
func writeGains(b *strings.Builder, before, after world) {
	none := true
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if ask1(after, Get, key, after[key], "") == nil && (before[key] == "" || ask1(before, Get, key, before[key], "") != nil) {
			fmt.Fprintf(b, "  %s\n", abbreviate(key))
			none = false
		}
	}
	if none {
		b.WriteString("  none\n")
	}
}
