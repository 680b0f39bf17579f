package juju

import (
	"bytes"
	_ "embed"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"bijou/multicall/console"
)

// jujuCommands lists the commands of Juju 2.9 and 3.6.
//
//go:embed testdata/juju-commands.txt
var jujuCommands string

// otherCommands lists commands of compose, docker, kubectl and systemd's tools.
//
//go:embed testdata/other-commands.txt
var otherCommands string

// TestEveryCommandAnswers checks that every command of Juju or a different tool gets a more useful answer
// than "unknown command".
func TestEveryCommandAnswers(t *testing.T) {
	for _, name := range strings.Fields(jujuCommands + otherCommands) {
		t.Run(name, func(t *testing.T) {
			own := translateArgs([]string{name})
			err := refuseMissing(own)
			if err == nil && (isCommand(own[0]) || own[0] == "--help") {
				return
			}

			var stderr bytes.Buffer
			code := console.Report(&stderr, err)
			if code != console.ExitUsage || strings.Count(stderr.String(), "\n") != 2 || !strings.Contains(stderr.String(), "\nhint: ") {
				t.Errorf("exit %d, %q", code, &stderr)
			}
		})
	}
}

// TestHintsParse checks that each command in a hint can be parsed in its printed form, with and without
// names.
func TestHintsParse(t *testing.T) {
	t.Setenv("BIJOU_HOME", t.TempDir())
	printed := regexp.MustCompile(`juju [^,;]*`)
	named := givenNames{
		apps: []string{"web", "db"}, units: []string{"web/0", "db/1"}, numbers: []string{"1"},
		files: []string{"./x.yaml"}, current: "prod",
	}
	withModel := named
	withModel.model = "prod"

	for _, m := range missingCommands() {
		for _, hint := range m.instead {
			for _, names := range []givenNames{{}, withModel} {
				filled, _, _ := names.fill(hint)
				for _, command := range printed.FindAllString(filled, -1) {
					checkParses(t, strings.ReplaceAll(command, "'", ""))
				}
			}
		}
	}
}

// checkCommands parses each command of a hint in its printed form.
func checkCommands(t *testing.T, hint string) {
	t.Helper()
	hint = strings.ReplaceAll(hint, "'", "")
	for _, command := range regexp.MustCompile(`juju [^,;]*`).FindAllString(hint, -1) {
		checkParses(t, strings.TrimSuffix(command, " or "))
	}
}

func checkParses(t *testing.T, command string) {
	t.Helper()
	args, _, err := cutCommand(strings.Fields(command)[1:])
	if err == nil {
		_, err = console.Parse(console.Streams{Out: io.Discard, Err: io.Discard}, ownCommand(), args)
	}
	if err != nil && err != console.ErrHelped {
		t.Errorf("%s: %v", command, err)
	}
}

// TestRefuseMissing checks that hints contain the user's own words.
func TestRefuseMissing(t *testing.T) {
	t.Setenv("BIJOU_HOME", t.TempDir())
	t.Setenv("JUJU_ENV", "home")
	for line, want := range map[string]string{
		"rm web":                      "juju remove-application web",
		"rm -f web/0 web/1":           "juju remove-unit web/0 web/1",
		"delete pod web/0":            "juju remove-unit web/0",
		"delete pod/web-0":            "juju remove-unit web/0",
		"delete -n x deployment web":  "juju remove-application web",
		"delete node 3":               "juju remove-machine 3",
		"-m prod rm web":              "juju -m prod remove-application web",
		"kill web/0 -m prod":          "to remove a unit: juju -m prod remove-unit web/0",
		"down":                        "juju destroy-model home",
		"down -v --remove-orphans":    "juju destroy-model home",
		"-m prod down":                "juju destroy-model prod",
		"apply -f x.yaml":             "juju deploy x.yaml",
		"apply --filename ./b":        "juju deploy ./b",
		"apply --filename=./b":        "juju deploy ./b",
		"restart web":                 "after a failure: juju resolved --retry web/0",
		"restart web/3":               "after a failure: juju resolved --retry web/3",
		"rollout restart deploy/web":  "after a failure: juju resolved --retry web/0",
		"rollout undo deployment web": "go back to the previous charm: juju rollback web",
		"rollout history":             "to see the progress of an upgrade: juju status",
		"config":                      "juju config APP; for the whole model: juju export-bundle",
		"config web":                  "",
		"pull":                        "upgrade the charm with: juju refresh APP",
		"restart":                     "after a failure: juju resolved --retry UNIT, or juju resolved --retry APP/0",
		"stop --help":                 "",
		"delete pods":                 "juju remove-unit UNIT..., or juju remove-application APP..., or juju remove-machine MACHINE...",
		"grant bob write default":     "to grant a secret to an application: juju grant-secret --help",
		"wait-for model prod":         "juju -m prod wait",
		"rollout status deploy/web":   "to see the progress of an upgrade: juju status web",
		"stop web":                    "to remove an application: juju remove-application web",
		"wait-for application web --query=status==\"blocked\" --timeout 10s": "juju wait web --for blocked --timeout 10s",
		"wait-for unit web/0 --query=workload-status==active":                "juju wait web/0 --for active",
		"wait-for application web --query=name==web&&status==\"blocked\"":    "juju wait web --for blocked",
		"wait-for application web --query=status==blocked||status==active":   "juju wait web --for active",
		"wait-for application web --query=life==alive":                       "juju wait web --for active",
		"-m prod wait-for application web":                                   "juju -m prod wait web --for active",
		"wait --for=condition=ready pod/web-0 --timeout 1m":                  "juju wait web/0 --for active --timeout 1m",
		"wait --for condition=available deployment/web":                      "juju wait web --for active",
		"wait --for=delete pod/web-0":                                        "juju wait web/0 --for gone",
		"wait web --for active":                                              "",
		"set image deployment/web nginx=1.2":                                 "upgrade the charm with: juju refresh web",
		"set image title=x":                                                  "",
		"create secret generic db --from-literal=pwd=x":                      "juju add-secret db pwd=x",
		"create secret generic db --from-literal=a-b=x":                      "a key has three characters or more: juju add-secret db key-a-b=x",
		"create secret generic db --from-literal=pw=x":                       "a key has three characters or more: juju add-secret db key-pw=x",
		"create secret":                "juju add-secret NAME KEY=VALUE",
		"kill-controller other":        "juju models",
		"suspend-relation":             "to end a relation: juju remove-relation A B",
		"suspend-relation 2":           "to end a relation: juju remove-relation 2; to add it again: juju integrate A B",
		"disable-command all msg":      "removals ask first on a terminal; to see what a removal would do: juju remove-application NAME --dry-run",
		"credentials":                  "juju set-credential CLOUD CREDENTIAL --file credentials.yaml",
		"secret-backends":              "juju secrets",
		"clouds":                       "for a model on this host: juju bootstrap local; for a model of containers: juju bootstrap nspawn",
		"compose up -d":                "to create a model: juju bootstrap; to create an application: juju deploy CHARM",
		"compose rm web":               "juju remove-application web",
		"kubectl delete pod web-0":     "juju remove-unit web/0",
		"--debug rm web -v":            "juju remove-application web",
		"stop":                         "",
		"start":                        "",
		"start web":                    "to see the units of an application: juju status web",
		"top pod web/0":                "run top on the machine with: juju ssh web/0 top -b -n 1",
		"wait-for application web":     "juju wait web --for active",
		"attach-storage":               "",
		"create-storage-pool fast lxd": "choose a pool with: juju deploy CHARM --storage NAME=POOL",
		"status":                       "",
		"":                             "",

		"config web title --reset":              "juju config web --reset title",
		"config web title size --reset":         "juju config web --reset title,size",
		"config web --reset title":              "",
		"config --services":                     "juju config APP; for the whole model: juju export-bundle",
		"set env deployment/web A=1 B=2":        "juju config web A=1 B=2",
		"run tmp --image=busybox -it -- sh -x":  "to run on all units: juju exec --all -- sh -x",
		"run tmp --image busybox":               "juju deploy CHARM",
		"run web/0 -- docker run --image=x":     "",
		"create namespace test":                 "juju add-model test",
		"create configmap x --from-literal=a=b": "juju config APPLICATION OPTION=VALUE",
		"create deployment x --image=nginx":     "juju deploy CHARM",
		"use-context prod":                      "juju switch prod",
		"delete secret pass":                    "juju remove-secret pass",
		"delete secret":                         "juju remove-secret SECRET",
		"delete namespace test":                 "juju destroy-model test",
		"delete namespace":                      "juju destroy-model home",
		"delete pvc data-0":                     "juju storage",
		"annotate app web team=a":               "juju show-application web",
		"up -d --scale web=3":                   "to change the number of units: juju scale web=3",
		"up --scale=web=3":                      "to change the number of units: juju scale web=3",
		"compose -f x.yml up -d":                "to create a model: juju bootstrap; to create an application: juju deploy CHARM",
		"attach web-0":                          "juju debug-log --follow --include web/0",
		"attach web":                            "juju debug-log --follow --include 'web/*'",
		"debug web/0 -it --image=busybox":       "juju ssh web/0",
		"describe pods":                         "juju status",
		"describe deploy -o yaml":               "juju status",
		"storage data/0":                        "juju show-storage data/0",
		"storage --format json":                 "",
		"kill -s HUP web":                       "to remove an application: juju remove-application web",
		"service ls":                            "juju status",
		"node ls":                               "juju machines",
	} {
		t.Run(line, func(t *testing.T) {
			var stderr bytes.Buffer
			console.Report(&stderr, refuseMissing(translateArgs(strings.Fields(line))))
			_, got, _ := strings.Cut(strings.TrimSuffix(stderr.String(), "\n"), "\nhint: ")
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			checkCommands(t, got)
		})
	}
}

// TestHintKubectl checks the hints for the kinds and contexts of kubectl.
func TestHintKubectl(t *testing.T) {
	isStaging := func(name string) bool { return name == "staging" }
	for line, want := range map[string]string{
		"pods":             "juju status",
		"pod web/0":        "juju show-unit web/0",
		"nodes":            "juju machines",
		"secrets":          "juju secrets",
		"events":           "juju debug-log",
		"storage":          "juju storage",
		"pvc":              "juju storage",
		"all":              "juju status",
		"namespaces":       "juju models",
		"view":             "juju models",
		"get-contexts":     "juju models",
		"use-context prod": "juju switch prod",
		"configmap":        "juju status",
		"deployment web":   "juju show-application web",
		"web":              "",

		"pods -o wide":                "juju status",
		"pods -o json -A":             "juju status --format json",
		"pod web-0 -oyaml":            "juju show-unit web/0 --format yaml",
		"deploy/web -o json":          "juju show-application web --format json",
		"pods -n staging":             "juju -m staging status",
		"pods -m other":               "juju -m other status",
		"-m other pod web-0":          "juju -m other show-unit web/0",
		"pods -n kube-system":         "juju status",
		"pods -l app=web":             "juju status web",
		"pods -w":                     "juju status --watch 1s",
		"pods -l app=web --watch":     "juju status --watch 1s web",
		"svc,deploy -A":               "juju status",
		"pv,pvc":                      "juju storage",
		"endpoints web":               "juju show-application web",
		"events --sort-by=.x -o json": "juju debug-log",
		"set-context --current --namespace=staging": "juju switch staging",
		"set-context": "juju switch NAME",
	} {
		t.Run(line, func(t *testing.T) {
			got := hintKubectl(append([]string{"get"}, strings.Fields(line)...), isStaging)
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			checkCommands(t, got)
		})
	}
}

// TestRefuseFormat checks that kubectl's -o gets a hint about --format, and that names of files do not.
func TestRefuseFormat(t *testing.T) {
	for line, want := range map[string]string{
		"config web -o json":        "juju config --format=json web",
		"-m x models --output=yaml": "juju -m x models --format=yaml",
		"machines -o wide":          "juju machines",
		"storage -o jsonpath={.a}":  "juju storage --format=json",
		"get pods -o json":          "",
		"config web -o ./json":      "",
		"config web -o out.txt":     "",
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			output := strings.TrimPrefix(words[len(words)-1], "--output=")
			var stderr bytes.Buffer
			console.Report(&stderr, refuseFormat(output, words))
			_, got, _ := strings.Cut(stderr.String(), "\nhint: ")
			got, _, _ = strings.Cut(got, "\n")
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			checkCommands(t, got)
		})
	}
}

func TestFollowedChannel(t *testing.T) {
	for _, c := range []struct{ asked, effective, want string }{
		{"latest/edge", "latest/stable", "latest/edge"},
		{"edge", "14/stable", "14/edge"},
		{"edge", "stable", "latest/edge"},
		{"stable", "14/stable", "14/stable"},
		{"stable", "stable", "stable"},
		{"14/stable", "", "14/stable"},
	} {
		t.Run(c.asked+" "+c.effective, func(t *testing.T) {
			if got := followedChannel(c.asked, c.effective); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTranslateArgs(t *testing.T) {
	for line, want := range map[string]string{
		"help":                             "--help",
		"help deploy":                      "deploy --help",
		"help commands":                    "documentation",
		"help hook-tools":                  "help-hook-commands",
		"help hook-tool relation-get":      "help-hook-commands relation-get",
		"list-models":                      "models",
		"help list-machines":               "machines --help",
		"-m prod list-storage --format=x":  "-m prod storage --format=x",
		"list-users":                       "users",
		"logs web":                         "debug-log --no-tail --include=web/*",
		"logs -f --tail 5 web/0":           "debug-log -f --lines=5 --include=web/0",
		"logs --follow=true web":           "debug-log --follow=true --include=web/*",
		"logs --tail=all --since 10m web":  "debug-log --no-tail --lines=0 --since 10m --include=web/*",
		"logs -t pod/web-0 -c main":        "debug-log --no-tail --include=web/0 -c main",
		"compose logs -f web":              "debug-log -f --include=web/*",
		"compose":                          "--help",
		"--debug status":                   "status --debug",
		"-m x --logging-config a=b -q get": "-m x get --logging-config a=b -q",
		"--version":                        "--version",
		"--debug":                          "--debug",
		"logs -n 3 1":                      "debug-log --no-tail -n 3 --include=machine-1",
		"logs -l app=web --previous":       "debug-log --no-tail --include=web/* --previous",
		"logs -l ERROR":                    "debug-log --no-tail -l ERROR",
		"logs --level ERROR":               "debug-log --no-tail --level ERROR",
		"describe web/0":                   "show-unit web/0",
		"describe pod web/0 --format json": "show-unit web/0 --format json",
		"describe deployment/web":          "show-application web",
		"inspect web":                      "show-application web",
		"describe node 0":                  "show-machine 0",
		"describe --format json web/0":     "show-unit --format json web/0",
		"describe":                         "show-unit",
		"status":                           "status",
		"-m x":                             "-m x",

		"-n staging logs web":                "-m staging debug-log --no-tail --include=web/*",
		"--namespace=staging get pods":       "--model=staging get pods",
		"compose -f x.yml -p prod ps":        "-m prod ps",
		"compose --env-file=x logs web":      "debug-log --no-tail --include=web/*",
		"logs -n staging web":                "debug-log --no-tail --model=staging --include=web/*",
		"logs --since-time=2026-01-01 web":   "debug-log --no-tail --since=2026-01-01 --include=web/*",
		"describe pod web-0":                 "show-unit web/0",
		"describe pods":                      "describe pods",
		"describe secret pass":               "show-secret pass",
		"describe pvc data/0":                "show-storage data/0",
		"expose deployment web --port=80":    "expose web --port=80",
		"expose deployment/web":              "expose web",
		"expose web":                         "expose web",
		"deploy -f bundle.yaml":              "deploy bundle.yaml",
		"deploy --filename=b.yaml --dry-run": "deploy b.yaml --dry-run",
		"-n x deploy -f=./b":                 "-m x deploy ./b",
		"deploy -f":                          "deploy -f",
		"deploy ./b -f x":                    "deploy ./b -f x",
		"create-backup -m prod --filename x": "backup -m prod x",

		"create-backup --timeout 5m --filename x": "backup --timeout 5m x",
	} {
		t.Run(line, func(t *testing.T) {
			if got := strings.Join(translateArgs(strings.Fields(line)), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestBackupWords(t *testing.T) {
	now := time.Date(2026, 2, 28, 17, 0, 30, 0, time.UTC)
	for line, want := range map[string]string{
		"":                              "juju-backup-20260228-170030.tar.gz",
		"some notes":                    "juju-backup-20260228-170030.tar.gz",
		"--filename=x --no-download":    "--no-download x",
		"before-upgrade --filename ./x": "./x",
		"notes --timeout=5m":            "--timeout=5m juju-backup-20260228-170030.tar.gz",
	} {
		t.Run(line, func(t *testing.T) {
			if got := strings.Join(backupWords(strings.Fields(line), now), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestUnneeded checks that each command in the list of unneeded options exists under its main name.
func TestUnneeded(t *testing.T) {
	for _, u := range unneeded() {
		for _, command := range strings.Fields(u.Commands) {
			if command != "*" && ownCommandName(command) != command {
				t.Errorf("options %q are of %q, which is no command's first name", u.Options, command)
			}
		}
	}
}

func ownCommandName(name string) string {
	for _, l := range ownCommand().List() {
		if l.Answers(name) {
			return l.Name
		}
	}
	return ""
}
