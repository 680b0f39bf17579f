package metrics

// help returns the lines of help that Prometheus shows, by the metric's name. docs/how-to/watch-it.md describes
// the metrics.
func help() map[string]string {
	return map[string]string{
		"bijou_hook_seconds":                "How long hooks, actions and commands have run.",
		"bijou_machines":                    "Machines, by status.",
		"bijou_provisioner_leader":          "1 while this provisioner leads.",
		"bijou_provisioner_queue_length":    "Instances to start and to stop, and other actions in the last plan.",
		"bijou_store_commit_seconds":        "How long commits to the store take.",
		"bijou_store_view_seconds":          "How long it takes to read the snapshot for one decision.",
		"bijou_unit_queue_length":           "Hooks of relations that are queued for the unit.",
		"bijou_unit_state":                  "1 for each unit that the process runs, with its state and the status of its workload.",
		"neco_server_finished":              "1 once the boot server has done all steps of the last update.",
		"neco_server_info":                  "1 for each boot server, with its worker's version and plan.",
		"neco_server_present":               "1 while the boot server's worker is alive.",
		"neco_server_step":                  "The step of the last update that the boot server has reached.",
		"neco_updater_alerts_total":         "Deliveries of alerts.",
		"neco_updater_checks_total":         "How often the updater has looked for releases.",
		"neco_updater_degraded":             "The number of differences from the last update, while no update runs.",
		"neco_updater_leader":               "1 while this updater leads.",
		"neco_updater_missing_servers":      "Boot servers of the update whose worker is not alive.",
		"neco_updater_no_releases":          "1 if looking for releases has failed for a long time.",
		"neco_updater_withdrawn_release":    "1 if servers run a newer release than every published one.",
		"neco_updater_refused_releases":     "Releases that are newer than that of the last update, and cannot be installed.",
		"neco_updater_running":              "1 while an update is running.",
		"neco_updater_servers":              "Registered boot servers.",
		"neco_updater_servers_without_room": "Boot servers without enough disk space for the next release.",
		"neco_updater_stopped":              "1 while the update is stopped and waits for an operator.",
		"neco_updater_version_info":         "1, with the versions of the newest release and of the last update.",
		"neco_worker_busy":                  "1 while a step or an installation is running.",
		"neco_worker_step":                  "The step of the running update; 0 means none.",
		"neco_worker_steps_total":           "Steps and installations that have ended.",

		"neco_server_step_since_timestamp_seconds":  "When the boot server reached its step, by its own clock.",
		"neco_updater_last_check_timestamp_seconds": "When the updater last looked for releases successfully.",
	}
}

// Help returns a line that explains the metric, or "" for an unknown one.
func Help(name string) string { return help()[name] }
