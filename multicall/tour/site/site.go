// Package site has the servers of the two example charms. The database has a line of text for
// each related application, and the blog has a page that shows its line.
//
// These are not a real database and a real blog. They do just enough that a newcomer can fetch a page whose
// text came through a relation. The charms' hooks start and stop the servers, which need no packages and no
// root.
package site

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	fetchTimeout = 5 * time.Second
	maxLine      = 64 << 10 // the maximum number of bytes of a database's answer that the blog reads
)

// newHandler returns the handler for a server of the given kind. The handler reads the files in the directory
// again for each request.
func newHandler(kind, dir string) http.Handler {
	if kind == "database" {
		return database(dir)
	}
	return &blog{dir: dir, client: http.Client{Timeout: fetchTimeout}}
}

// database answers GET /NAME with the text in NAME.text, if the request has the password in
// NAME.password.
type database string

// ServeHTTP answers a request for /NAME with the text in NAME.text, if the request has the user NAME and the
// password in NAME.password. Without these it answers 403. It answers 404 to a name that leads out of the
// directory.
func (d database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if !filepath.IsLocal(name) {
		http.NotFound(w, r)
		return
	}

	wanted, err := os.ReadFile(filepath.Join(string(d), name+".password"))
	user, password, ok := r.BasicAuth()
	isAllowed := err == nil && ok && user == name && password == string(wanted)
	if !isAllowed {
		http.Error(w, "access denied", http.StatusForbidden)
		return
	}

	http.ServeFile(w, r, filepath.Join(string(d), name+".text"))
}

// blog answers each request with its only page. Its settings are those in wp-config.php.
type blog struct {
	dir    string
	client http.Client
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</html>
`))

// ServeHTTP answers with the page, or with an error if the blog has no database or cannot read it.
func (b *blog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	config, err := readConfig(filepath.Join(b.dir, "wp-config.php"))
	if err != nil {
		http.Error(w, "This blog has no database yet.", http.StatusServiceUnavailable)
		return
	}

	text, err := b.fetch(r, config)
	if err != nil {
		http.Error(w, fmt.Sprintf("This blog cannot read its database: %v", err), http.StatusBadGateway)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// If this fails, the client is gone.
	_ = page.Execute(w, struct{ Title, Text string }{config["BLOG_TITLE"], text})
}

// fetch gets the text from the database that the configuration names. It reads at most maxLine bytes, and removes
// surrounding white space. It returns an error if the database's answer is not 200.
func (b *blog) fetch(r *http.Request, config map[string]string) (string, error) {
	url := "http://" + config["DB_HOST"] + "/" + config["DB_NAME"]
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(config["DB_USER"], config["DB_PASSWORD"])

	answer, err := b.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()

	text, err := io.ReadAll(io.LimitReader(answer.Body, maxLine))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", config["DB_HOST"], answer.Status)
	}
	return strings.TrimSpace(string(text)), err
}

// define matches a setting of wp-config.php whose value is a string.
var define = regexp.MustCompile(`(?m)^define\('(\w+)',\s*'((?:[^'\\]|\\.)*)'\);$`)

// readConfig returns the settings in a wp-config.php whose values are strings, by name.
func readConfig(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	unescape := strings.NewReplacer(`\\`, `\`, `\'`, `'`)
	config := map[string]string{}
	for _, match := range define.FindAllStringSubmatch(string(text), -1) {
		config[match[1]] = unescape.Replace(match[2])
	}
	return config, nil
}
