# shellcheck shell=bash
# What several hooks share. A hook runs in the charm's directory, so that it
# can say: source lib/blog.sh

# What we keep lies beside the charm and outlives its upgrades. The password of
# the database is in there, hence the mask.
umask 077
data=$JUJU_UNIT_DIR/data

# connect UNIT: remember the database that UNIT of this hook's relation offers.
# Fails if UNIT has not told everything yet; then it has to call again.
connect() {
    local host port database user password
    host=$(relation-get host "$1")
    port=$(relation-get port "$1")
    database=$(relation-get database "$1")
    user=$(relation-get user "$1")
    password=$(relation-get password "$1")
    [ "$host" ] && [ "$port" ] && [ "$database" ] && [ "$user" ] && [ "$password" ] || return 1

    declare -p host port database user password > "$data/database"
}

# publish: render the configuration and open the blog to the world. Without a
# database there is nothing to publish.
publish() {
    if [ ! -e "$data/database" ]; then
        status-set blocked "needs a database: juju add-relation $JUJU_SERVICE mysql"
        return
    fi
    render > "$data/wp-config.php.new"
    mv "$data/wp-config.php.new" "$data/wp-config.php"
    open-port 80/tcp
    status-set active "blogging: $(config-get blog-title)"
}

# disconnect: forget the database, and close the blog.
disconnect() {
    rm -f "$data/database" "$data/wp-config.php"
    close-port 80/tcp
    publish
}

# render: print wp-config.php.
render() {
    # The values of host, port, database, user and password.
    # shellcheck disable=SC1091
    source "$data/database"
    # shellcheck disable=SC2154
    cat <<PHP
<?php
define('DB_HOST',     $(quote "$host:$port"));
define('DB_NAME',     $(quote "$database"));
define('DB_USER',     $(quote "$user"));
define('DB_PASSWORD', $(quote "$password"));

define('BLOG_TITLE',  $(quote "$(config-get blog-title)"));
define('WP_DEBUG',    $(config-get debug | tr TF tf));
PHP
}

# quote STRING: print it as a string of PHP, where \ and ' need a \ before them.
quote() {
    local s=${1//\\/\\\\}
    printf "'%s'" "${s//\'/\\\'}"
}
