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

// pinsFile is the file in the charm's directory tests that records the pins.
const pinsFile = "store-charms.json"

// pin is the release of one of the store's charms that every run of the scripts deploys.
type pin struct {
	Revision  int            `json:"revision"`
	SHA256    string         `json:"sha256"`
	Resources map[string]int `json:"resources,omitempty"` // the resources' revisions, by name
}

// equal reports whether both pins are of the same release.
func (p pin) equal(other pin) bool {
	return p.Revision == other.Revision && p.SHA256 == other.SHA256 && maps.Equal(p.Resources, other.Resources)
}

// storeWish is one of the store's charms as a script names it. channel and revision are "" if they are not
// given.
type storeWish struct{ name, channel, revision string }

// String returns the wish as a script writes it. The text is also the key of the wish's pin.
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

// parseDeploy separates the arguments of `juju deploy` into names and options with their values. The name of an
// option such as -n2 includes the value.
func parseDeploy(words []string) (d deployWords) {
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") {
			d.names = append(d.names, words[i])
			continue
		}

		name, value, hasEqualSign := strings.Cut(words[i], "=")
		option := deployOption{name, value, words[i : i+1]}
		// The value of an option of one letter can follow the letter, as in -n2.
		valueFollows := !strings.HasPrefix(name, "--") && len(name) > 2
		isSwitch := slices.Contains(deploySwitches(), name)
		isComplete := hasEqualSign || valueFollows || isSwitch
		if !isComplete && i+1 < len(words) {
			option.value = words[i+1]
			option.words = words[i : i+2]
			i++
		}
		d.options = append(d.options, option)
	}

	return d
}

// wish returns the store's charm that the arguments name. The result ok is false if the arguments do not name
// a charm of the store.
func (d deployWords) wish() (w storeWish, ok bool) {
	for _, option := range d.options {
		switch option.name {
		case "--channel":
			w.channel = option.value
		case "--revision":
			w.revision = option.value
		case "--repository":
			// juju takes the charm from a directory.
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
// must fail, since their lines begin with "!".
func findWishes(lines string) (wishes []storeWish) {
	isPrefix := func(word string) bool { return word == "?" || strings.HasPrefix(word, "[") }
	for line := range strings.Lines(lines) {
		words := scriptWords(line)
		// A command can have conditions, and "?" if it may fail.
		for len(words) > 0 && isPrefix(words[0]) {
			words = words[1:]
		}

		isDeploy := len(words) > 2 && words[0] == "juju" && words[1] == "deploy"
		if !isDeploy {
			continue
		}
		if w, ok := parseDeploy(words[2:]).wish(); ok {
			wishes = append(wishes, w)
		}
	}

	return wishes
}

// scriptWords splits a script's line into words, without single quotes and without its comment. Spaces and #
// between quotes belong to a word.
func scriptWords(line string) (words []string) {
	word := ""
	inWord := false // an empty word between quotes is also a word
	inQuotes := false
	// The added line end ends the last word.
	for _, r := range line + "\n" {
		switch {
		case r == '\'':
			inWord = true
			inQuotes = !inQuotes
		case inQuotes || !strings.ContainsRune(" \t\r\n#", r):
			inWord = true
			word += string(r)
		default:
			// The character ends a word.
			if inWord {
				words = append(words, word)
			}
			if r == '#' {
				return words
			}
			word = ""
			inWord = false
		}
	}

	return words
}

// fetchCharms fetches the store's charms that the scripts deploy, since scripts have no network by default. It
// fetches the pinned release of a charm. If none is pinned or --repin is set, it fetches the release that the
// store has now for the wish. It writes new pins to the file of pins, so that the next run gets the same
// releases. It returns the directories of the charms, by the texts of the wishes, or nil if the scripts deploy
// no charm of the store.
func (c testCmd) fetchCharms(a *author, scripts []string) (map[string]string, error) {
	wishes, err := readWishes(scripts)
	if err != nil {
		return nil, err
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
	oldPins := maps.Clone(pins)
	for _, key := range slices.Sorted(maps.Keys(wishes)) {
		oldPin, isPinned := pins[key]
		if c.Repin {
			isPinned = false
		}
		newPin, folder, err := a.fetchCharm(wishes[key], oldPin, isPinned)
		if err != nil {
			return nil, err
		}
		if !newPin.equal(oldPin) {
			fmt.Fprintf(a.streams.Err, "%s is now pinned to revision %d in %s\n", key, newPin.Revision, path)
		}
		pins[key] = newPin
		folders[key] = folder
	}

	if maps.EqualFunc(oldPins, pins, pin.equal) {
		return folders, nil
	}
	data, err := json.MarshalIndent(pins, "", "  ")
	if err != nil {
		return nil, err
	}
	return folders, osutil.WriteFile(path, append(data, '\n'), 0o644)
}

// readWishes returns the charms of the store that the scripts deploy. The keys are the texts of the wishes.
func readWishes(scripts []string) (map[string]storeWish, error) {
	wishes := map[string]storeWish{}
	for _, file := range scripts {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		// The comment of a txtar archive contains the script's commands.
		for _, w := range findWishes(string(archive.Comment)) {
			wishes[w.String()] = w
		}
	}

	return wishes, nil
}

// readPins reads the file of pins. The keys are the texts of wishes. It returns an empty map if there is no
// file.
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

// encodeFolders returns the map of directories as one argument for a script's process, which decodes the
// argument with decodeFolders. It returns "" for an empty map.
func encodeFolders(folders map[string]string) (string, error) {
	if len(folders) == 0 {
		return "", nil
	}
	data, err := json.Marshal(folders)
	return string(data), err
}

// decodeFolders returns the map that encodeFolders has encoded. It returns nil for "".
func decodeFolders(text string) (folders map[string]string, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &folders)
	return folders, err
}

// fetchCharm returns the release that the wish names, as a pin, and the directory that contains the charm
// with its resources. If isPinned is set, this is the pinned release, and fetchCharm downloads it only if the
// cache does not have it. It returns an error if the store then has a different file for the charm's revision.
// If isPinned is not set, fetchCharm downloads the release that the store has now for the wish.
func (a *author) fetchCharm(w storeWish, pinned pin, isPinned bool) (fetched pin, folder string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return fetched, "", err
	}
	cache = filepath.Join(cache, "bijou", "charm-test")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fetched, "", err
	}

	var resources map[string]int // nil for the current revisions
	if isPinned {
		folder = filepath.Join(cache, folderName(w.name, pinned))
		if isCached(folder, pinned) {
			return pinned, folder, nil
		}
		// The wish's channel is left out, since juju download refuses a channel beside a revision.
		w = storeWish{name: w.name, revision: strconv.Itoa(pinned.Revision)}
		resources = pinned.Resources
	}

	draft, err := os.MkdirTemp(cache, "draft-")
	if err != nil {
		return fetched, "", err
	}
	defer os.RemoveAll(draft)
	if err := a.download(w, resources, draft); err != nil {
		return fetched, "", err
	}

	archive, sum, err := findArchive(draft)
	if err != nil {
		return fetched, "", fmt.Errorf("cannot use %q in a test: %w", w.name, err)
	}
	fetched = pin{Revision: revisionOf(archive), SHA256: sum, Resources: resourcesOf(draft)}
	if isPinned && fetched.SHA256 != pinned.SHA256 {
		return fetched, "", console.Hint(fmt.Errorf("charm %s, revision %d, is not the pinned file: its SHA-256 sum is %s, not %s",
			w.name, pinned.Revision, fetched.SHA256, pinned.SHA256), "to pin the store's current release: charm test --repin")
	}

	folder = filepath.Join(cache, folderName(w.name, fetched))
	// Rename does not replace the directory of an earlier download.
	if err := os.RemoveAll(folder); err != nil {
		return fetched, "", err
	}
	return fetched, folder, os.Rename(draft, folder)
}

// isCached reports whether the directory contains the pinned charm with its pinned resources.
func isCached(folder string, pinned pin) bool {
	_, sum, err := findArchive(folder)
	return err == nil && sum == pinned.SHA256 && maps.Equal(resourcesOf(folder), pinned.Resources)
}

// folderName returns the name of the directory in the cache for a release of a charm with its resources.
func folderName(name string, p pin) string {
	// The sum of a pin in a file that was edited can be too short.
	sumPart := p.SHA256[:min(len(p.SHA256), 16)]
	folder := fmt.Sprintf("%s_r%d_%s", name, p.Revision, sumPart)
	if len(p.Resources) == 0 {
		return folder
	}

	sum := sha256.New()
	for _, resource := range slices.Sorted(maps.Keys(p.Resources)) {
		fmt.Fprintf(sum, "%s=%d\n", resource, p.Resources[resource])
	}
	return fmt.Sprintf("%s_%x", folder, sum.Sum(nil)[:8])
}

// download runs juju to download the charm and its resources into the directory. The argument resources
// contains the wanted revisions of resources by name. Without them, juju downloads the current ones. If juju
// fails, download prints juju's messages, and returns an error with an exit code and without a message.
func (a *author) download(w storeWish, resources map[string]int, folder string) error {
	cmd := exec.CommandContext(a.ctx, a.parts.Binary)
	cmd.Args = []string{"juju", "download", w.name, "--resources", "--no-progress"}
	switch {
	case w.revision != "":
		// juju deploy accepts both, and then the channel is only for later upgrades. juju download refuses both.
		cmd.Args = append(cmd.Args, "--revision", w.revision)
	case w.channel != "":
		cmd.Args = append(cmd.Args, "--channel", w.channel)
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

// archiveName and resourceName match the names of files that juju download writes: CHARM_rREVISION.charm, and
// resource_NAME_rREVISION with an optional suffix.
var (
	archiveName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_r(\d+)\.charm$`) })
	resourceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^resource_(.+?)_r(\d+)(?:_|$)`) })
)

// findArchive returns the path of the charm in a directory that juju download has filled, and its SHA-256
// sum. It returns an error unless the directory has exactly one charm.
func findArchive(folder string) (path, sum string, err error) {
	names, err := fs.Glob(os.DirFS(folder), "*.charm")
	if err != nil {
		return "", "", err
	}
	// The file of a bundle ends with .bundle.
	if len(names) != 1 {
		return "", "", errors.New("it is not a charm")
	}

	path = filepath.Join(folder, names[0])
	sum, _, err = osutil.DigestFile(path)
	return path, sum, err
}

// revisionOf returns the charm's revision in the name of a downloaded file, or 0 if the name has none.
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
	// Glob fails only for an invalid pattern.
	files, _ := filepath.Glob(filepath.Join(folder, "resource_*"))
	for _, file := range files {
		if m := resourceName().FindStringSubmatch(filepath.Base(file)); m != nil {
			// The match has only digits.
			found[m[1]], _ = strconv.Atoi(m[2])
		}
	}
	return found
}

// storeJuju is the command juju of scripts. It deploys charms of the store from the fetched files.
type storeJuju struct {
	script.Cmd
	folders map[string]string // the directories of the fetched charms, by wish
}

// Run runs juju with the arguments that replace returns.
func (j storeJuju) Run(s *script.State, args ...string) (script.WaitFunc, error) {
	return j.Cmd.Run(s, j.replace(args)...)
}

// replace returns the arguments of juju deploy with the charm's file instead of its name, if the charm was
// fetched from the store. It keeps the service's name, and drops --channel and --revision. It moves the other
// options behind the names. For each fetched resource that the arguments do not give, it adds the fetched
// file. If args do not deploy a fetched charm, replace returns them unchanged.
func (j storeJuju) replace(args []string) []string {
	if len(args) < 2 || args[0] != "deploy" {
		return args
	}

	given := parseDeploy(args[1:])
	w, ok := given.wish()
	if !ok {
		return args
	}
	folder := j.folders[w.String()]
	if folder == "" {
		return args
	}
	archive, _, err := findArchive(folder)
	if err != nil {
		return args
	}

	words := []string{"deploy", archive}
	// Without a service's name, the service must get the charm's name, and not the file's.
	if len(given.names) == 1 {
		words = append(words, w.name)
	}
	words = append(words, given.names[1:]...)

	givenResources := map[string]bool{}
	for _, option := range given.options {
		switch option.name {
		case "--channel", "--revision":
			// The file already is of this release.
			continue
		case "--resource":
			name, _, _ := strings.Cut(option.value, "=")
			givenResources[name] = true
		}
		words = append(words, option.words...)
	}

	return append(words, attachFetched(folder, givenResources)...)
}

// attachFetched returns the options of juju deploy that attach the resources in the directory of a fetched
// charm, except those that are already given.
func attachFetched(folder string, given map[string]bool) (words []string) {
	// Glob fails only for an invalid pattern.
	files, _ := filepath.Glob(filepath.Join(folder, "resource_*"))
	for _, file := range files {
		m := resourceName().FindStringSubmatch(filepath.Base(file))
		if m != nil && !given[m[1]] {
			words = append(words, "--resource", m[1]+"="+file)
		}
	}
	return words
}
