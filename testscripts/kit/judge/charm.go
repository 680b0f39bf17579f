package judge

import (
	"fmt"
	"os"
	"path/filepath"
)

// installHook tells each unit what its recorder is to do besides, before its
// first hook.
const installHook = `#!/bin/bash
mkdir -p "$JUJU_UNIT_DIR/control"
cp "$CHARM_DIR"/control/* "$JUJU_UNIT_DIR/control/"
source "${0%/*}/record"
`

// beat has a hook write the unit's next number into its relations, and note that.
// A kill leaves the last number or the next one, never an empty file.
const beat = `
n=$(( $(cat "$JUJU_UNIT_DIR/beat" 2>/dev/null || echo 0) + %d ))
echo "$n" > "$JUJU_UNIT_DIR/beat.new"
mv "$JUJU_UNIT_DIR/beat.new" "$JUJU_UNIT_DIR/beat"
ids=
for id in $(relations); do
    relation-set -r "$id" beat="$n"
    ids+=" $id"
done
note "{\"event\":\"wrote\",\"hook\":\"$hook\",\"pid\":$$,\"beat\":$n,\"ids\":\"${ids# }\"}"
`

// keep saves the record of a unit that goes, since its folder goes, too. The hook
// that does so is taken for ended there.
const keep = `kept="%s/${JUJU_UNIT_NAME//\//-}"
cp "$log" "$kept"
log=$kept note "{\"event\":\"end\",\"hook\":\"$hook\",\"pid\":$$,\"exit\":0}"
`

// Charm makes the folder a charm whose record can be judged, of the recorder: its
// units write a number of theirs into all their relations, a greater one each
// time their configuration changes. The records of units that stop end up in the
// folder gone.
func Charm(folder, recorder, gone string) error {
	if err := os.CopyFS(folder, os.DirFS(recorder)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, "hooks", "install")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "control"), 0o755); err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(folder, "hooks", "install"), []byte(installHook), 0o755); err != nil {
		return err
	}
	programs := map[string]string{"config-changed": fmt.Sprintf(beat, 1), "stop": fmt.Sprintf(keep, gone)}
	for _, side := range []string{"server", "client", "ring"} {
		programs[side+"-relation-joined"] = fmt.Sprintf(beat, 0)
	}
	for hook, text := range programs {
		if err := os.WriteFile(filepath.Join(folder, "control", "run-"+hook), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
