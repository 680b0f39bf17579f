package juju

import "bijou/multicall/console"

// unneeded returns the options of Juju, compose and kubectl that commands accept although they have no
// meaning here.
func unneeded() []console.Unneeded {
	return []console.Unneeded{
		{Commands: "*", Options: "color no-color", Why: "colours are there on a terminal, unless NO_COLOR is set"},
		{Commands: "*", Options: "debug v verbose show-log logging-config=", Why: "the log is in juju debug-log"},
		{Commands: "*", Options: "quiet q", Why: "commands print what was asked for, and notes to stderr"},
		{Commands: "*", Options: "no-browser-login B", Why: "nothing logs in"},
		{Commands: "debug-log", Options: "c= container= all-containers", Why: "a unit is no container, and its log is one"},
		{Commands: "debug-log", Options: "p previous", Why: "the log goes on over restarts, and has what was before"},
		{Commands: "exec run", Options: "c= container=", Why: "a unit is no container, and its commands run on its machine"},
		{Commands: "exec run", Options: "T no-tty privileged no-deps", Why: "a command has a terminal with -t only, and the rights of the unit's agent"},
		{Commands: "*", Options: "c= controller=", Why: "there are no controllers"},
		{Commands: "*", Options: "client", Why: "there are no controllers beside this client"},
		{Commands: "remove-unit destroy-service destroy-machine destroy-relation", Options: "no-wait", Why: "it never waits between two steps of a removal"},
		{Commands: "exec run", Options: "parallel execution-group=", Why: "units run side by side, and each does one thing at a time"},
		{Commands: "*", Options: "utc", Why: "times name their zone, or are of this host's"},
		{Commands: "exec run", Options: "rm", Why: "nothing is made for it that could stay"},
		{Commands: "storage", Options: "filesystem volume", Why: "all storage is directories, and there are no volumes"},
		{Commands: "exec", Options: "operator", Why: "a command runs where its unit is"},
		{Commands: "deploy add-unit upgrade-charm", Options: "bind=", Why: "there are no spaces"},
		{Commands: "deploy", Options: "device=", Why: "machines have no such devices"},
		{Commands: "deploy", Options: "map-machines=", Why: "a bundle always makes machines of its own"},
		{Commands: "add-relation", Options: "via=", Why: "machines of a model reach one another"},
		{Commands: "expose unexpose", Options: "endpoints= to-cidrs= to-spaces= port= target-port= protocol= type= name= external-ip=", Why: "the whole application is marked, and no firewall changes"},
		{Commands: "ssh scp debug-hooks", Options: "pty=", Why: "a terminal is there whenever juju itself runs on one"},
		{Commands: "ssh scp debug-hooks", Options: "proxy no-host-key-checks remote", Why: "the provider knows the way to its machines"},
		{Commands: "bootstrap", Options: "owner= credential= region= bootstrap-base= bootstrap-series= bootstrap-image= bootstrap-constraints= agent-version= metadata-source= clouds regions no-gui no-dashboard no-default-model add-model= model-default= model-defaults= controller-charm-channel= controller-charm-path= storage-pool= build-agent keep-broken auto-upgrade force", Why: "machine 0 is this host, and no cloud makes it"},
		{Commands: "ssh", Options: "i= o= l= p= F= J= b= E= t T q v A C X Y x n N 4 6", Why: "the provider knows the way to its machines"},
		{Commands: "scp", Options: "i= o= P= p q C", Why: "the provider knows the way to its machines"},
		{Commands: "debug-hooks", Options: "no-tmux", Why: "hooks open windows of tmux"},
		{Commands: "add-machine", Options: "disks= private-key= public-key=", Why: "the provider says which disks and keys its machines have"},
		{Commands: "export-bundle", Options: "include-series", Why: "a bundle always names the series"},
		{Commands: "status", Options: "a all q no-trunc services orphans", Why: "it always shows all"},
		{Commands: "status", Options: "filter=", Why: "it shows what its words name, as in juju status active"},
		{Commands: "show-action-status", Options: "machines=", Why: "what runs on a machine by itself is not kept"},
		{Commands: "environments machines storage secrets", Options: "all uuid", Why: "it always shows all"},
		{Commands: "environments show-model", Options: "exact-time", Why: "it shows no times"},
		{Commands: "environments", Options: "user=", Why: "there are no users"},
		{Commands: "resources", Options: "details", Why: "all units of an application get the same resources"},
		{Commands: "debug-log", Options: "until=", Why: "the log is shown to its end"},
		{Commands: "get", Options: "n= namespace= A all-namespaces w watch watch-only l= selector= field-selector= sort-by= show-labels no-headers ignore-not-found label-columns= L= chunk-size= subresource= template= current minify raw flatten", Why: "it is an option of kubectl's"},
		{Commands: "get", Options: "services images volumes networks profiles hash= no-interpolate no-normalize resolve-image-digests", Why: "it is an option of compose's"},
		{Commands: "documentation", Options: "all split no-index out= url=", Why: "it prints the list"},
		{Commands: "upgrade-juju", Options: "agent-version= agent-stream= build-agent reset-previous-upgrade ignore-agent-versions y yes", Why: "agents go over to this binary"},
		{Commands: "backup", Options: "no-download keep-copy B", Why: "the backup is the file itself"},
	}
}
