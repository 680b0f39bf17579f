package metrics

// help returns a line of help for each metric, which Prometheus shows. docs/how-to/watch-it.md says more.
func help() map[string]string {
	return map[string]string{
		"bijou_hook_seconds":                "How long hooks, actions and commands have run.",
		"bijou_machines":                    "Machines, by status.",
		"bijou_provisioner_leader":          "1 while this provisioner leads.",
		"bijou_provisioner_queue_length":    "Instances to start and to stop, and other actions that the last look planned.",
		"bijou_store_commit_seconds":        "How long commits to the store take.",
		"bijou_store_view_seconds":          "How long it takes to read the snapshot for one decision.",
		"bijou_unit_queue_length":           "Hooks of relations that are queued for the unit.",
		"bijou_unit_state":                  "1 for each unit that the process runs, with its state and the status of its workload.",
		"neco_server_finished":              "1 once the boot server has done all steps of the last update.",
		"neco_server_info":                  "1 for each boot server, with its worker's version and plan.",
		"neco_server_present":               "1 while the boot server's worker is alive.",
		"neco_server_step":                  "The step of the last update that the boot server has reached.",
		"neco_updater_alerts_total":         "Deliveries of alerts.",
		"neco_updater_checks_total":         "Times that the updater has looked for releases.",
		"neco_updater_degraded":             "How many things differ from what the last update left, while none runs.",
		"neco_updater_leader":               "1 while this updater leads.",
		"neco_updater_missing_servers":      "Boot servers of the update whose worker is not alive.",
		"neco_updater_no_releases":          "1 if looking for releases has failed for a long time.",
		"neco_updater_withdrawn_release":    "1 if servers have a newer release than any that is published.",
		"neco_updater_refused_releases":     "Releases that are newer than the last update's, and cannot be installed.",
		"neco_updater_running":              "1 while an update runs.",
		"neco_updater_servers":              "Boot servers that are registered.",
		"neco_updater_servers_without_room": "Boot servers that have no room for the next release.",
		"neco_updater_stopped":              "1 while the update is stopped and waits for an operator.",
		"neco_updater_version_info":         "1, with the newest release's version and the last update's.",
		"neco_worker_busy":                  "1 while a step or an installation runs.",
		"neco_worker_step":                  "The step of the update that runs; 0 is none.",
		"neco_worker_steps_total":           "Steps and installations that have ended.",

		"neco_server_step_since_timestamp_seconds":  "When the boot server reached its step, by its own clock.",
		"neco_updater_last_check_timestamp_seconds": "When the updater last looked for releases successfully.",
	}
}

// Help returns a line that explains the metric, or "" for an unknown one.
func Help(name string) string { return help()[name] }
