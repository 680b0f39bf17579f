package charms_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/tour/charms"
	"bijou/state/charm"
	"bijou/testscripts/kit/need"
)

// examples writes the embedded charms and returns their directory.
func examples(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := charms.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBlogAndDatabase(t *testing.T) {
	need.Whole(t)
	dir, p := examples(t), newPlay(t)
	p.configure("mysql", map[string]any{"port": 3306})
	p.configure("wordpress", map[string]any{"blog-title": `It's \ my blog`, "debug": false, "port": 8080})
	p.deploy("mysql/0", filepath.Join(dir, "mysql"))
	p.deploy("wordpress/0", filepath.Join(dir, "wordpress"))
	p.enter("mysql/0", "db:0")
	p.enter("wordpress/0", "db:0")

	want := `<?php
define('DB_HOST',     '127.0.0.1:PORT');
define('DB_NAME',     'wordpress');
define('DB_USER',     'wordpress');
define('DB_PASSWORD', 'PASSWORD');

define('BLOG_TITLE',  'It\'s \\ my blog');
define('WP_DEBUG',    false);
`
	path := filepath.Join(p.unitDir("wordpress/0"), "data", "wp-config.php")
	compareConfig(t, p, path, want)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("wp-config.php: mode %v, %v: the password must be the owner's only", info.Mode(), err)
	}

	// The page contains a line from the database, and its title is escaped.
	if got, want := fetch(t, p), "<h1>It&#39;s \\ my blog</h1>\n<p>Hello from mysql/0, database wordpress.</p>"; !strings.Contains(got, want) {
		t.Errorf("the page has no %q:\n%s", want, got)
	}

	// With a different port both charms still work.
	p.configure("mysql", map[string]any{"port": 3406})
	p.run("mysql/0", "config-changed")
	p.settle()
	compareConfig(t, p, path, want)
	fetch(t, p)

	p.configure("wordpress", map[string]any{"debug": true})
	p.run("wordpress/0", "config-changed")
	p.run("wordpress/0", "upgrade-charm")
	compareConfig(t, p, path, strings.Replace(want, "false", "true", 1))

	p.runIn("wordpress/0", "db:0", "departed", "mysql/0")
	p.runIn("wordpress/0", "db:0", "broken", "")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("wp-config.php is still there after the relation: %v", err)
	}
	if got := p.world().Status["wordpress/0"]; !strings.HasPrefix(got, "blocked ") {
		t.Errorf("status of wordpress/0: %q", got)
	}
	p.runIn("mysql/0", "db:0", "broken", "")
	p.run("mysql/0", "stop")
	p.run("wordpress/0", "stop")
	if got := p.world().Ports; len(got["mysql/0"])+len(got["wordpress/0"]) > 0 {
		t.Errorf("ports still open: %v", got)
	}
}

// fetch returns the blog's page.
func fetch(t *testing.T, p *play) string {
	t.Helper()
	url, err := os.ReadFile(filepath.Join(p.units["wordpress/0"], "url"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(strings.TrimSpace(string(url)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the blog answers %s, %v:\n%s", answer.Status, err, page)
	}
	return string(page)
}

// compareConfig compares a rendered file with want, in which PORT and PASSWORD stand for the values from
// mysql.
func compareConfig(t *testing.T, p *play, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := p.world().Relations["db:0"].Settings["mysql/0"]
	password := settings["password"]
	if len(password) != 32 {
		t.Errorf("password %q is not 32 characters long", password)
	}
	if diff := cmp.Diff(strings.NewReplacer("'PASSWORD'", "'"+password+"'", "PORT", settings["port"]).Replace(want), string(got)); diff != "" {
		t.Errorf("wp-config.php (-want +got):\n%s", diff)
	}
}

func TestUnitsOfOneBlogShareADatabase(t *testing.T) {
	need.Whole(t)
	dir, p := examples(t), newPlay(t)
	p.configure("mysql", map[string]any{"port": 3306})
	p.configure("wordpress", map[string]any{"blog-title": "b", "debug": false, "port": 8080})
	p.deploy("mysql/0", filepath.Join(dir, "mysql"))
	p.enter("mysql/0", "db:0")
	for _, unit := range []string{"wordpress/0", "wordpress/1"} {
		p.deploy(unit, filepath.Join(dir, "wordpress"))
		p.enter(unit, "db:0")
		p.enter(unit, "loadbalancer:1")
	}
	a, errA := os.ReadFile(filepath.Join(p.unitDir("wordpress/0"), "data", "wp-config.php"))
	b, errB := os.ReadFile(filepath.Join(p.unitDir("wordpress/1"), "data", "wp-config.php"))
	if diff := cmp.Diff(string(a), string(b)); diff != "" || errA != nil || errB != nil || len(a) == 0 {
		t.Errorf("the units' databases differ (%v, %v):\n%s", errA, errB, diff)
	}
	p.leave("wordpress/1")
	got, err := os.ReadFile(filepath.Join(p.unitDir("wordpress/0"), "data", "units"))
	if strings.TrimSpace(string(got)) != "wordpress/0" || err != nil {
		t.Errorf("units of the blog: %q, %v", got, err)
	}
}

func TestEveryCharmIsReadAndArchived(t *testing.T) {
	dir := examples(t)
	for path, want := range map[string]charm.Dialect{
		filepath.Join(dir, "mysql"): charm.Modern, filepath.Join(dir, "wordpress"): charm.Modern,
		"recorder": charm.Modern, "trivial": charm.Modern, "hookless": charm.Modern,
		"not-executable": charm.Modern, "redis": charm.Modern, "redis-client": charm.Modern,
	} {
		c, err := charm.ReadDir(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, mark := c.Dialect(); got != want {
			t.Errorf("%s: dialect %s (%s), want %s", path, got, mark, want)
		}
		out := &strings.Builder{}
		if _, err := charm.Archive(path, out, charm.ArchiveOptions{}); err != nil {
			t.Error(err)
		}
	}
}
