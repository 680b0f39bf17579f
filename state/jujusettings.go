package state

import (
	"slices"
	"strings"
)

// AuthorizedKeys is Juju's setting with the SSH keys that operators have added, one per line.
const AuthorizedKeys = "authorized-keys"

// jujuSettings are keys of Juju 3.6's model-config that have no effect here.
const jujuSettings = `
agent-metadata-url agent-stream apt-ftp-proxy apt-http-proxy apt-https-proxy apt-mirror apt-no-proxy
authorized-keys backup-dir cloudinit-userdata container-image-metadata-defaults-disabled
container-image-metadata-url container-image-stream container-inherit-properties container-networking-method
default-base default-space development disable-network-management disable-telemetry egress-subnets
enable-os-refresh-update enable-os-upgrade extra-info fan-config firewall-mode ftp-proxy http-proxy https-proxy
ignore-machine-addresses image-metadata-defaults-disabled image-metadata-url image-stream
logforward-enabled logging-config logging-output lxd-snap-channel
max-action-results-age max-action-results-size max-status-history-age max-status-history-size mode
net-bond-reconfigure-delay no-proxy num-container-provision-workers num-provision-workers operator-storage
proxy-ssh resource-tags saas-ingress-allow secret-backend snap-http-proxy snap-https-proxy snap-store-assertions
snap-store-proxy snap-store-proxy-url ssh-allow ssl-hostname-verification storage-default-block-source
storage-default-filesystem-source syslog-ca-cert syslog-client-cert syslog-client-key syslog-host test-mode
transmit-vendor-metrics workload-storage`

// IsJujuSetting reports whether the key is a setting of Juju that has no effect here. An environment only
// stores and shows its value.
func IsJujuSetting(key string) bool { return slices.Contains(strings.Fields(jujuSettings), key) }
