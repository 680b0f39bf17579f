package juju

import "bijou/multicall/console"

// unneeded returns the options of Juju, compose and kubectl that commands accept although they have no effect here.
// The first row that matches a command and an option applies. After a row of all commands (*), a row of single
// commands with the same option has no effect. An option with = takes a value.
func unneeded() []console.Unneeded {
	return []console.Unneeded{
		{Commands: "ssh", Options: "B= P=", Why: "the provider decides how to connect to its machines"},
		{Commands: "*", Options: "color no-color", Why: "output is coloured on a terminal, unless NO_COLOR is set"},
		{Commands: "*", Options: "debug v verbose show-log logging-config=", Why: "juju debug-log shows the log"},
		{Commands: "*", Options: "quiet q", Why: "commands print only results to stdout, and notes to stderr"},
		{Commands: "*", Options: "no-browser-login B", Why: "there is no login"},
		{Commands: "debug-log", Options: "c= container= all-containers", Why: "a unit is not a container, and has a single log"},
		{Commands: "debug-log", Options: "p previous", Why: "the log continues across restarts"},
		{Commands: "exec run", Options: "c= container=", Why: "a unit is not a container, and its commands run on its machine"},
		{Commands: "exec run", Options: "T no-tty privileged no-deps", Why: "commands get a terminal only with -t, and run with the rights of the unit's agent"},
		{Commands: "*", Options: "c= controller=", Why: "there are no controllers"},
		{Commands: "*", Options: "client", Why: "there are no controllers"},
		{Commands: "remove-unit remove-application remove-machine remove-relation", Options: "no-wait", Why: "removals never wait between their steps"},
		{Commands: "exec run", Options: "parallel execution-group=", Why: "different units run commands in parallel, and one unit runs them one after another"},
		{Commands: "*", Options: "utc", Why: "times are in the time zone of this host, or include a zone"},
		{Commands: "exec run", Options: "rm", Why: "commands create no containers"},
		{Commands: "storage", Options: "filesystem volume", Why: "storage is always a directory, and there are no volumes"},
		{Commands: "exec", Options: "operator", Why: "commands run on the unit's machine"},
		{Commands: "deploy add-unit refresh", Options: "bind=", Why: "bijou has no network spaces"},
		{Commands: "deploy", Options: "device=", Why: "devices cannot be requested"},
		{Commands: "deploy", Options: "map-machines=", Why: "a bundle always gets machines of its own"},
		{Commands: "integrate", Options: "via=", Why: "machines of a model can reach each other"},
		{Commands: "expose unexpose", Options: "endpoints= to-cidrs= to-spaces= port= target-port= protocol= type= name= external-ip=", Why: "an application is exposed as a whole, and bijou changes no firewall"},
		{Commands: "ssh scp debug-hooks", Options: "pty=", Why: "the session has a terminal if juju itself runs on one"},
		{Commands: "ssh scp debug-hooks", Options: "proxy no-host-key-checks remote", Why: "the provider decides how to connect to its machines"},
		{Commands: "bootstrap", Options: "owner= credential= region= bootstrap-base= bootstrap-series= bootstrap-image= bootstrap-constraints= agent-version= metadata-source= clouds regions no-gui no-dashboard no-default-model add-model= model-default= model-defaults= controller-charm-channel= controller-charm-path= storage-pool= build-agent keep-broken auto-upgrade force", Why: "bootstrap creates no controller and no cloud instance"},
		{Commands: "ssh", Options: "i= o= l= p= F= J= b= E= t T q v A C X Y x n N 4 6", Why: "the provider decides how to connect to its machines"},
		{Commands: "scp", Options: "i= o= P= p q C", Why: "the provider decides how to connect to its machines"},
		{Commands: "debug-hooks", Options: "no-tmux", Why: "debug-hooks always uses tmux"},
		{Commands: "add-machine", Options: "disks= private-key= public-key=", Why: "the provider chooses its machines' disks and keys"},
		{Commands: "export-bundle", Options: "include-series", Why: "bundles always include the series"},
		{Commands: "status", Options: "a all q no-trunc services orphans", Why: "the command always shows everything"},
		{Commands: "status", Options: "filter=", Why: "use selectors instead, as in juju status active"},
		{Commands: "operations", Options: "machines=", Why: "commands on machines are not recorded"},
		{Commands: "models machines storage secrets", Options: "all uuid", Why: "the command always shows everything"},
		{Commands: "models show-model", Options: "exact-time", Why: "the output has no times"},
		{Commands: "models", Options: "user=", Why: "there are no users"},
		{Commands: "resources", Options: "details", Why: "all units of an application get the same resources"},
		{Commands: "debug-log", Options: "until=", Why: "the log is always shown to its end"},
		{Commands: "config", Options: "n= namespace= A all-namespaces w watch watch-only l= selector= field-selector= sort-by= show-labels no-headers ignore-not-found label-columns= L= chunk-size= subresource= template= current minify raw flatten", Why: "this is an option of kubectl get, but juju get shows the options of an application"},
		{Commands: "config", Options: "services images volumes networks profiles hash= no-interpolate no-normalize resolve-image-digests", Why: "this is an option of docker compose config, but juju config shows the options of an application"},
		{Commands: "documentation", Options: "all split no-index out= url=", Why: "juju documentation always prints one list"},
		{Commands: "upgrade-model", Options: "agent-version= agent-stream= build-agent reset-previous-upgrade ignore-agent-versions y yes", Why: "agents always switch to the binary that runs this command"},
		{Commands: "backup", Options: "no-download keep-copy", Why: "the backup is always written to a file on this host"},
	}
}
