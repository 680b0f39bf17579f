package judge

import (
	"fmt"
	"os"
	"path/filepath"
)

// installHook adds commands to each unit's recorder before the unit's first hook.
const installHook = `#!/bin/bash
mkdir -p "$JUJU_UNIT_DIR/control"
cp "$CHARM_DIR"/control/* "$JUJU_UNIT_DIR/control/"
source "${0%/*}/record"
`

// beat is a script for hooks. It writes the unit's next number into the unit's relations and records the
// number. A kill leaves the previous number or the next one, never an empty file.
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

// keep is a script for the stop hook. It saves the unit's record, since the unit's directory is removed
// afterwards. It adds the end of the hook to the saved record.
const keep = `kept="%s/${JUJU_UNIT_NAME//\//-}"
cp "$log" "$kept"
log=$kept note "{\"event\":\"end\",\"hook\":\"$hook\",\"pid\":$$,\"exit\":0}"
`

// Charm writes a charm into the directory. The charm is made from the recorder, so the package can judge its
// records. Its units write a number into all their relations, and a greater one at each change of their
// configuration. The records of units that stop go to the directory gone.
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
