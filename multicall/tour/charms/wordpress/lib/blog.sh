# shellcheck shell=bash
# Functions for several hooks. A hook runs in the charm's directory, so it can use:
# source lib/blog.sh

# The data is beside the charm, so that upgrades do not touch it. It contains the password of
# the database, hence the umask.
umask 077
data=$JUJU_UNIT_DIR/data

# connect UNIT: store the settings of the database that UNIT of this hook's relation
# provides. It fails if they are not complete yet.
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

# publish: render the configuration, start the blog and open its port. Without a database
# it only sets the status.
publish() {
    if [ ! -e "$data/database" ]; then
        status-set blocked "needs a database: juju integrate $JUJU_SERVICE mysql"
        return
    fi
    render > "$data/wp-config.php.new"
    mv "$data/wp-config.php.new" "$data/wp-config.php"
    serve
    status-set active "blogging at $(<url)"
}

# serve: start the web server on the port of the option, or on the next free one. A server
# that already listens there keeps running. The file url, in the charm's directory, contains
# the address.
serve() {
    local host port id
    host=$(unit-get public-address)
    port=$(bijou tour-server start blog "$data" --listen "$host:$(config-get port)")

    [ "$port" = "$(cat "$data/port" 2>/dev/null)" ] || close
    open-port "$port/tcp"
    echo "$port" > "$data/port"
    echo "http://$host:$port/" > url

    for id in $(relation-ids website); do
        relation-set -r "$id" hostname="$host" port="$port" || juju-log "will tell $id later"
    done
}

# close: close the open port, if there is one.
close() {
    [ -e "$data/port" ] || return 0
    close-port "$(<"$data/port")/tcp"
    rm -f "$data/port" url
}

# disconnect: remove the database's settings, and end the blog's server.
disconnect() {
    rm -f "$data/database" "$data/wp-config.php"
    bijou tour-server stop "$data"
    close
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
