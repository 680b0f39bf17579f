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
        status-set blocked "needs a database: juju integrate $JUJU_SERVICE mysql"
        return
    fi
    render > "$data/wp-config.php.new"
    mv "$data/wp-config.php.new" "$data/wp-config.php"
    serve
    status-set active "blogging at $(<url)"
}

# serve: start the web server on the port of our option, or on the next one that
# is free. A server that listens there already stays. The file url, in the
# charm's directory, has the address.
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

# close: close the port that we have opened, if there is one.
close() {
    [ -e "$data/port" ] || return 0
    close-port "$(<"$data/port")/tcp"
    rm -f "$data/port" url
}

# disconnect: forget the database, and end the blog's server.
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
