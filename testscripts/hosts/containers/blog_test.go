package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
)

// repository returns the directory of packages that testscripts/hosts/containers/packages makes.
func repository(t *testing.T) string {
	need.Long(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "bijou-test", "wordpress-packages-1")
	if _, err := os.Stat(folder); err != nil {
		need.Skip(t, "nspawn", fmt.Sprintf("no packages at %s: testscripts/hosts/containers/packages fetches them", folder))
	}
	return folder
}

// TestBlog deploys, uses, kills and removes a blog and its database, with the state in a file.
func TestBlog(t *testing.T) {
	w := newWorld(t, "blog", "--config nspawn.apt-repository="+repository(t))
	begun := time.Now()
	w.sh("juju deploy docs/examples/mariadb && juju deploy docs/examples/wordpress && juju add-relation wordpress mariadb && juju expose wordpress")
	w.eventually("juju status --wide", `(?s)mariadb/0 \S* +started +active .*wordpress/0 \S* +started +active`)
	fmt.Printf("containers: a blog and its database, from deploy to related: %.1fs\n", time.Since(begun).Seconds())
	blog, database := w.address("2"), w.address("1")
	if status := w.sh("juju status --wide"); blog == database || !strings.Contains(status, blog+"  80/tcp") || !strings.Contains(status, database+"  3306/tcp") {
		t.Errorf("the units' addresses are not those of their containers, %s and %s:\n%s", blog, database, status)
	}
	if own := w.sh("juju run wordpress/0 -- 'unit-get private-address; unit-get public-address; hostname -I'"); own != blog+"\n"+blog+"\n"+blog {
		t.Errorf("the blog's unit knows itself as %q; want %s", own, blog)
	}
	// Charm libraries look there to find out which version of Juju they run under.
	if said := w.sh("juju run wordpress/0 -- '/var/lib/juju/tools/machine-*/jujud version; stat -c %a / /etc /var/lib/juju'"); said != "3.6.27-bijou\n755\n755\n755" {
		t.Errorf("libraries learn of Juju, and of the folders' modes: %q", said)
	}
	w.eventually("curl -sSL http://"+blog+"/", "five-minute WordPress installation")

	// The page installs the blog into its related database. If the answer to the first request was lost, the
	// page answers that the blog is installed already.
	form := "weblog_title=Gems&user_name=admin&admin_password=aVerySecretOne&admin_password2=aVerySecretOne&admin_email=a@example.com&language="
	w.eventually(fmt.Sprintf("curl -sS 'http://%s/wp-admin/install.php?step=2' -d '%s'", blog, form), "Success!|already installed WordPress")
	w.isThere(blog)

	// Everything that is killed must come back with all its data.
	agent := w.agentIn("2")
	w.sh("kill -9 " + agent)
	w.sh("juju set wordpress upload-limit=16")
	w.eventually("juju run wordpress/0 -- 'cat /etc/php/*/apache2/conf.d/90-charm.ini'", "upload_max_filesize = 16M")

	if now := w.agentIn("2"); now == agent {
		t.Errorf("the agent is process %s still", now)
	}
	w.isThere(blog)

	dead := w.init("1")
	w.sh("kill -9 " + dead)
	// It may be up again before anyone has seen it down.
	w.eventually(w.findInit("1")+" | grep -vx "+dead, `^\d+\n$`)
	w.eventually("juju machines", `(?m)^1 +running +`+strings.ReplaceAll(database, ".", `\.`)+" ")
	w.isThere(blog)

	w.sh("juju destroy-environment -y blog")
}

// isThere waits until the blog shows its title and the database contains the title and the user.
func (w *world) isThere(blog string) {
	w.t.Helper()
	w.eventually("curl -sSL http://"+blog+"/", "<title>Gems")
	query := "select (select option_value from wordpress.wp_options where option_name='blogname'), (select user_login from wordpress.wp_users)"
	w.eventually(fmt.Sprintf(`juju run mariadb/0 -- %q`, `mysql -N -e "`+query+`"`), `Gems\s+admin`)
}

// agentIn returns the process id of a machine's agent, on this machine.
func (w *world) agentIn(machine string) string {
	w.t.Helper()
	return w.sh(`pgrep -f -- "machine-agent --machine ` + machine + ` --env ` + w.home + `"`)
}
