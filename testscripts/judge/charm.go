package judge

import (
	"errors"
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
	err := os.CopyFS(folder, os.DirFS(recorder))
	if err == nil {
		err = os.Remove(filepath.Join(folder, "hooks", "install"))
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(folder, "control"), 0o755)
	}
	write := func(name, content string, mode os.FileMode) {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(content), mode))
	}
	write("hooks/install", installHook, 0o755)
	write("control/run-config-changed", fmt.Sprintf(beat, 1), 0o644)
	for _, side := range []string{"server", "client", "ring"} {
		write("control/run-"+side+"-relation-joined", fmt.Sprintf(beat, 0), 0o644)
	}
	write("control/run-stop", fmt.Sprintf(keep, gone), 0o644)
	return err
}
