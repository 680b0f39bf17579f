package containers

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStorage makes a unit in a container write into a directory of this host and into one of the container's
// machine. Both must survive the container's death, and must be reusable by the next unit.
func TestStorage(t *testing.T) {
	disk, charm := t.TempDir(), filepath.Join(t.TempDir(), "keeper")
	w := newWorld(t, "storage", "--config nspawn.storage="+disk)
	w.sh(`mkdir -p ` + charm + `/hooks && cat >` + charm + `/metadata.yaml <<'END'
name: keeper
summary: keeps things
storage:
  data: {type: filesystem, location: /srv/data}
  more: {type: filesystem, location: /srv/more, multiple: {range: 0-2}}
END
printf '#!/bin/sh\nhostname >>$JUJU_STORAGE_LOCATION/log\n' >` + charm + `/hooks/data-storage-attached
cp ` + charm + `/hooks/data-storage-attached ` + charm + `/hooks/more-storage-attached
chmod 755 ` + charm + `/hooks/*`)
	w.sh("juju deploy " + charm + " --storage data=host:" + disk + " --storage more=1")
	w.eventually("juju status --wide", `keeper/0 \S* +started`)
	w.sh("juju run keeper/0 -- 'echo precious >/srv/data/word; echo more >/srv/more/more/1/word; mountpoint /srv/data; mountpoint /srv/more/more/1'")
	if data, err := os.ReadFile(filepath.Join(disk, "storage-data-0", "word")); string(data) != "precious\n" {
		t.Errorf("on this host there is %q: %v", data, err)
	}
	w.sh("kill -9 " + w.init("1"))
	w.eventually("juju run keeper/0 -- 'cat /srv/data/word /srv/more/more/1/word'", "precious\nmore")
	w.sh("juju detach-storage data/0 more/1 && juju wait")
	w.sh("juju add-unit keeper --to 1")
	w.eventually("juju status --wide", `keeper/1 \S* +started`)
	w.sh("juju detach-storage data/2 more/3 && juju wait && juju attach-storage keeper/1 data/0 more/1 && juju wait")
	if word := w.sh("juju run keeper/1 -- 'cat /srv/data/word /srv/more/more/1/word'"); word != "precious\nmore" {
		t.Errorf("the next unit finds %q", word)
	}
	w.sh("juju remove-storage data/2 more/3")
	w.eventually("ls "+disk, `^storage-data-0\n$`)
	w.sh("juju destroy-environment -y storage")
	if data, err := os.ReadFile(filepath.Join(disk, "storage-data-0", "word")); err != nil {
		t.Errorf("what the operator's folder has went with the environment: %q, %v", data, err)
	}
}
