#!/bin/sh
# Records what the stub is told.
set -e
if [ -n "$JUJU_REMOTE_UNIT" ]; then
	relation-get --format json - "$JUJU_REMOTE_UNIT"
else
	relation-get --format json --app - "$JUJU_REMOTE_APP"
fi >>"$JUJU_UNIT_DIR/saw.$JUJU_RELATION"
