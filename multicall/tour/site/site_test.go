package site

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDatabase(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "blog.password", "s3cret")
	write(t, dir, "blog.text", "a line\n")
	write(t, dir, "empty.password", "")

	cases := map[string]struct {
		path, user, password string
		code                 int
	}{
		"the right password":               {"/blog", "blog", "s3cret", http.StatusOK},
		"a wrong password":                 {"/blog", "blog", "secret", http.StatusForbidden},
		"another user":                     {"/blog", "other", "s3cret", http.StatusForbidden},
		"nobody":                           {"/blog", "", "", http.StatusForbidden},
		"a database that is not there":     {"/other", "other", "", http.StatusForbidden},
		"a path that leaves the directory": {"/../blog", "../blog", "s3cret", http.StatusNotFound},
		"no name":                          {"/", "", "", http.StatusNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, c.path, nil)
			if c.user != "" {
				request.SetBasicAuth(c.user, c.password)
			}
			answer := httptest.NewRecorder()
			newHandler("database", dir).ServeHTTP(answer, request)
			if answer.Code != c.code {
				t.Errorf("%s answers %d, not %d: %s", c.path, answer.Code, c.code, answer.Body)
			}
		})
	}
}

func TestBlog(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	server := httptest.NewServer(newHandler("database", data))
	defer server.Close()

	fetch := func() (int, string) {
		answer := httptest.NewRecorder()
		newHandler("blog", dir).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		return answer.Code, answer.Body.String()
	}
	expect := func(code int, text string) {
		t.Helper()
		if got, body := fetch(); got != code || !strings.Contains(body, text) {
			t.Errorf("the blog answers %d, %q; want %d, with %q", got, body, code, text)
		}
	}

	expect(http.StatusServiceUnavailable, "has no database yet")

	write(t, dir, "wp-config.php", `<?php
define('DB_HOST',     '`+server.Listener.Addr().String()+`');
define('DB_NAME',     'blog');
define('DB_USER',     'blog');
define('DB_PASSWORD', 'it\'s \\');

define('BLOG_TITLE',  '<b> & \'c\'');
define('WP_DEBUG',    false);
`)
	expect(http.StatusBadGateway, "403")

	write(t, data, "blog.password", `it's \`)
	write(t, data, "blog.text", "1 < 2\n")
	expect(http.StatusOK, "<h1>&lt;b&gt; &amp; &#39;c&#39;</h1>\n<p>1 &lt; 2</p>")

	server.Close()
	expect(http.StatusBadGateway, "cannot read its database")
}
