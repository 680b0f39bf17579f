#!/bin/sh
# Records the settings that the stub receives from a unit or an application, and separately those of the application.
set -e
if [ -n "$JUJU_REMOTE_UNIT" ]; then
	relation-get --format json - "$JUJU_REMOTE_UNIT"
else
	relation-get --format json --app - "$JUJU_REMOTE_APP"
fi >>"$JUJU_UNIT_DIR/saw.$JUJU_RELATION"
relation-get --format json --app - "$JUJU_REMOTE_APP" >>"$JUJU_UNIT_DIR/saw-app.$JUJU_RELATION"
