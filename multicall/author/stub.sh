#!/bin/sh
# Records what the stub is told: by a unit or by its application, and apart what the application says.
set -e
if [ -n "$JUJU_REMOTE_UNIT" ]; then
	relation-get --format json - "$JUJU_REMOTE_UNIT"
else
	relation-get --format json --app - "$JUJU_REMOTE_APP"
fi >>"$JUJU_UNIT_DIR/saw.$JUJU_RELATION"
relation-get --format json --app - "$JUJU_REMOTE_APP" >>"$JUJU_UNIT_DIR/saw-app.$JUJU_RELATION"
