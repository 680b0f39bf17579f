package client

// ToolNames are the names that the client answers to: one constant, so that looking a name
// up costs nothing at start. A test holds that of hookenv/tools against it.
const ToolNames = "action-fail action-get action-log action-set application-version-set close-port config-get credential-get " +
	"goal-state is-leader juju-log juju-logger juju-reboot leader-get leader-set network-get open-port opened-ports " +
	"payload-register payload-status-set payload-unregister relation-get relation-ids relation-list relation-model-get " +
	"relation-set resource-get secret-add secret-get secret-grant secret-ids secret-info-get secret-remove secret-revoke " +
	"secret-set state-delete state-get state-set status-get status-set storage-add storage-get storage-list unit-get " +
	"unit-relations"
