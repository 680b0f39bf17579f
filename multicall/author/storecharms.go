package author

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
	"rsc.io/script"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/osutil"
)

// pinsFile is the file in the charm's tests that pins the store's charms that scripts deploy.
const pinsFile = "store-charms.json"

// pin is the release of a charm of the store that scripts deploy.
type pin struct {
	Revision  int            `json:"revision"`
	SHA256    string         `json:"sha256"`
	Resources map[string]int `json:"resources,omitempty"` // the resources' revisions, by name
}

// is reports whether both pins are of the same release.
func (p pin) is(o pin) bool {
	return p.Revision == o.Revision && p.SHA256 == o.SHA256 && maps.Equal(p.Resources, o.Resources)
}

// storeWish is a charm of the store as a script names it.
type storeWish struct{ name, channel, revision string }

// String returns the wish as a script writes it. It is the key of its pin.
func (w storeWish) String() string {
	text := w.name
	if w.channel != "" {
		text += " --channel " + w.channel
	}
	if w.revision != "" {
		text += " --revision " + w.revision
	}
	return text
}

// deploySwitches returns the options of deploy that take no value.
func deploySwitches() []string {
	return []string{
		"--force", "--force-series", "--force-base", "--trust", "--dry-run", "--allow-outside", "--wait",
		"--quiet", "-q", "--verbose", "-v", "--debug", "--show-log", "--utc", "--client", "--color", "--no-color",
		"--no-browser-login", "-B", "--help", "-h",
	}
}

// deployWords are the arguments of `juju deploy`.
type deployWords struct {
	names   []string       // the charm, and the service's name if it is given
	options []deployOption // in the order of the arguments
}

// deployOption is an option of `juju deploy`.
type deployOption struct {
	name, value string
	words       []string // the option and its value as they are given
}

// parseDeploy separates the names from the options and their values.
func parseDeploy(words []string) (d deployWords) {
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") {
			d.names = append(d.names, words[i])
			continue
		}

		name, value, joined := strings.Cut(words[i], "=")
		option := deployOption{name, value, words[i : i+1]}
		// The value of an option of one letter can follow the letter, as in -n2.
		joined = joined || !strings.HasPrefix(name, "--") && len(name) > 2
		if !joined && !slices.Contains(deploySwitches(), name) && i+1 < len(words) {
			option.value = words[i+1]
			option.words = words[i : i+2]
			i++
		}
		d.options = append(d.options, option)
	}

	return d
}

// wish returns the store's charm that the arguments name. ok is false if they name no charm of the store.
func (d deployWords) wish() (w storeWish, ok bool) {
	for _, option := range d.options {
		switch option.name {
		case "--channel":
			w.channel = option.value
		case "--revision":
			w.revision = option.value
		case "--repository":
			return w, false
		}
	}

	if len(d.names) == 0 {
		return w, false
	}
	w.name = strings.TrimPrefix(d.names[0], "ch:")
	return w, charm.CheckName(w.name) == nil
}

// findWishes returns all charms of the store that a script's lines deploy. It leaves out deployments that
// must fail.
func findWishes(lines string) (all []storeWish) {
	for line := range strings.Lines(lines) {
		words := scriptWords(line)
		for len(words) > 0 && (words[0] == "?" || strings.HasPrefix(words[0], "[")) {
			words = words[1:]
		}
		if len(words) < 3 || words[0] != "juju" || words[1] != "deploy" {
			continue
		}
		if w, ok := parseDeploy(words[2:]).wish(); ok {
			all = append(all, w)
		}
	}

	return all
}

// scriptWords splits a script's line into words, without its comment. Spaces between quotes belong to a word.
func scriptWords(line string) (words []string) {
	word := ""
	begun := false
	quoted := false
	for _, r := range line + "\n" {
		switch {
		case r == '\'':
			begun = true
			quoted = !quoted
		case quoted || !strings.ContainsRune(" \t\r\n#", r):
			begun = true
			word += string(r)
		default:
			if begun {
				words = append(words, word)
			}
			if r == '#' {
				return words
			}
			word = ""
			begun = false
		}
	}

	return words
}

// fetchCharms downloads the store's charms that scripts deploy, since scripts have no network. It pins
// them, so that the next run gets the same revisions. It returns their directories, by wish.
func (c testCmd) fetchCharms(a *author, scripts []string) (map[string]string, error) {
	wishes := map[string]storeWish{}
	for _, file := range scripts {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		for _, w := range findWishes(string(archive.Comment)) {
			wishes[w.String()] = w
		}
	}
	if len(wishes) == 0 {
		return nil, nil
	}

	path := filepath.Join(c.Dir, "tests", pinsFile)
	pins, err := readPins(path)
	if err != nil {
		return nil, err
	}

	folders := map[string]string{}
	before := maps.Clone(pins)
	for _, key := range slices.Sorted(maps.Keys(wishes)) {
		was, isPinned := pins[key]
		if c.Repin {
			isPinned = false
		}
		now, folder, err := a.fetchCharm(wishes[key], was, isPinned)
		if err != nil {
			return nil, err
		}
		if !now.is(was) {
			fmt.Fprintf(a.streams.Err, "%s is now pinned to revision %d in %s\n", key, now.Revision, path)
		}
		pins[key] = now
		folders[key] = folder
	}

	if maps.EqualFunc(before, pins, pin.is) {
		return folders, nil
	}
	data, err := json.MarshalIndent(pins, "", "  ")
	if err != nil {
		return nil, err
	}
	return folders, osutil.WriteFile(path, append(data, '\n'), 0o644)
}

// readPins reads the file of pinned charms. It returns no pins if there is no file.
func readPins(path string) (map[string]pin, error) {
	pins := map[string]pin{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return pins, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &pins); err != nil {
		return nil, console.Hint(fmt.Errorf("cannot read %s: %w", path, err), "remove the file, and charm test pins the charms again")
	}

	return pins, nil
}

// encodeFolders returns the folders as one argument for a script's process, which decodes it with
// decodeFolders.
func encodeFolders(folders map[string]string) (string, error) {
	if len(folders) == 0 {
		return "", nil
	}
	data, err := json.Marshal(folders)
	return string(data), err
}

func decodeFolders(text string) (folders map[string]string, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &folders)
	}
	return folders, err
}

// fetchCharm returns the charm's pin, and the directory that holds the charm with its resources. If isPinned is
// true, these are the charm and the resources of the pin was. It asks the store only for files that this host
// lacks.
func (a *author) fetchCharm(w storeWish, was pin, isPinned bool) (now pin, folder string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return now, "", err
	}
	cache = filepath.Join(cache, "bijou", "charm-test")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return now, "", err
	}

	var resources map[string]int // nil for the current revisions
	if isPinned {
		folder = filepath.Join(cache, folderName(w.name, was))
		_, sum, err := findArchive(folder)
		if err == nil && sum == was.SHA256 && maps.Equal(resourcesOf(folder), was.Resources) {
			return was, folder, nil
		}
		w = storeWish{name: w.name, revision: strconv.Itoa(was.Revision)}
		resources = was.Resources
	}

	draft, err := os.MkdirTemp(cache, "draft-")
	if err != nil {
		return now, "", err
	}
	defer os.RemoveAll(draft)
	if err := a.download(w, resources, draft); err != nil {
		return now, "", err
	}

	archive, sum, err := findArchive(draft)
	if err != nil {
		return now, "", fmt.Errorf("cannot use %q in a test: %w", w.name, err)
	}
	now = pin{Revision: revisionOf(archive), SHA256: sum, Resources: resourcesOf(draft)}
	if isPinned && now.SHA256 != was.SHA256 {
		return now, "", console.Hint(fmt.Errorf("charm %s, revision %d, is not the pinned file: its SHA-256 sum is %s, not %s",
			w.name, was.Revision, now.SHA256, was.SHA256), "to pin the store's current release: charm test --repin")
	}

	folder = filepath.Join(cache, folderName(w.name, now))
	if err := os.RemoveAll(folder); err != nil {
		return now, "", err
	}
	return now, folder, os.Rename(draft, folder)
}

// folderName returns the name of the directory in the cache for a release of a charm with its resources.
func folderName(name string, p pin) string {
	folder := fmt.Sprintf("%s_r%d_%s", name, p.Revision, p.SHA256[:min(len(p.SHA256), 16)])
	if len(p.Resources) == 0 {
		return folder
	}

	sum := sha256.New()
	for _, resource := range slices.Sorted(maps.Keys(p.Resources)) {
		fmt.Fprintf(sum, "%s=%d\n", resource, p.Resources[resource])
	}
	return fmt.Sprintf("%s_%x", folder, sum.Sum(nil)[:8])
}

// download makes juju download the charm and its resources into the directory, in the pinned revisions if
// there are any. If juju fails, the user sees its messages.
func (a *author) download(w storeWish, resources map[string]int, folder string) error {
	cmd := exec.CommandContext(a.ctx, a.parts.Binary)
	cmd.Args = []string{"juju", "download", w.name, "--resources", "--no-progress"}
	if w.channel != "" {
		cmd.Args = append(cmd.Args, "--channel", w.channel)
	}
	if w.revision != "" {
		cmd.Args = append(cmd.Args, "--revision", w.revision)
	}

	for _, name := range slices.Sorted(maps.Keys(resources)) {
		cmd.Args = append(cmd.Args, "--resource", fmt.Sprintf("%s=%d", name, resources[name]))
	}

	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.streams.Err.Write(out)
		return console.Exit(console.ExitFailure, nil)
	}
	return nil
}

var (
	archiveName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_r(\d+)\.charm$`) })
	resourceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^resource_(.+?)_r(\d+)(?:_|$)`) })
)

// findArchive returns the only charm in a directory that juju download has filled, and its SHA-256 sum.
func findArchive(folder string) (path, sum string, err error) {
	names, err := fs.Glob(os.DirFS(folder), "*.charm")
	if err != nil {
		return "", "", err
	}
	if len(names) != 1 {
		return "", "", errors.New("it is not a charm")
	}

	path = filepath.Join(folder, names[0])
	sum, _, err = osutil.DigestFile(path)
	return path, sum, err
}

func revisionOf(archive string) int {
	m := archiveName().FindStringSubmatch(archive)
	if m == nil {
		return 0
	}
	// The match has only digits.
	n, _ := strconv.Atoi(m[1])
	return n
}

// resourcesOf returns the revisions of the resources that juju download has written into a directory, by name.
func resourcesOf(folder string) map[string]int {
	found := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(folder, "resource_*"))
	for _, file := range files {
		if m := resourceName().FindStringSubmatch(filepath.Base(file)); m != nil {
			// The match has only digits.
			found[m[1]], _ = strconv.Atoi(m[2])
		}
	}
	return found
}

// storeJuju is the command juju of scripts. It deploys the store's charms from the files that were fetched.
type storeJuju struct {
	script.Cmd
	folders map[string]string // the directories of the fetched charms, by wish
}

// Run runs juju.
func (j storeJuju) Run(s *script.State, args ...string) (script.WaitFunc, error) {
	return j.Cmd.Run(s, j.replace(args)...)
}

// replace returns the arguments of juju deploy with the charm's file instead of its name, if the charm was fetched
// from the store. The service's name stays the same. For each fetched resource that the arguments do not give, it
// adds the fetched file.
func (j storeJuju) replace(args []string) []string {
	if len(args) < 2 || args[0] != "deploy" {
		return args
	}

	given := parseDeploy(args[1:])
	w, ok := given.wish()
	folder := j.folders[w.String()]
	if !ok || folder == "" {
		return args
	}
	archive, _, err := findArchive(folder)
	if err != nil {
		return args
	}

	words := []string{"deploy", archive}
	if len(given.names) == 1 {
		words = append(words, w.name)
	}
	words = append(words, given.names[1:]...)

	attached := map[string]bool{}
	for _, option := range given.options {
		switch option.name {
		case "--channel", "--revision":
			continue
		case "--resource":
			name, _, _ := strings.Cut(option.value, "=")
			attached[name] = true
		}
		words = append(words, option.words...)
	}

	files, _ := filepath.Glob(filepath.Join(folder, "resource_*"))
	for _, file := range files {
		m := resourceName().FindStringSubmatch(filepath.Base(file))
		if m != nil && !attached[m[1]] {
			words = append(words, "--resource", m[1]+"="+file)
		}
	}
	return words
}
