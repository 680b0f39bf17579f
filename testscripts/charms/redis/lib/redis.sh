# shellcheck shell=bash
# Functions of all hooks. A unit keeps its files in $JUJU_UNIT_DIR/redis:
#
#   port, password   the port and password of this unit's server
#   primary          the name, host, port and password of the primary
#   redis.conf       the configuration, made from the files above
#   data/, log, pid  files of the server
#
# Every function can be called again at any time, from any hook.
umask 077

home=$JUJU_UNIT_DIR/redis
host=127.0.0.1
self=$JUJU_UNIT_NAME

# prepare: create the directory and a password, unless they exist.
prepare() {
    mkdir -p "$home/data"
    if [ ! -s "$home/password" ]; then
        head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > "$home/password"
    fi
}

port() { cat "$home/port" 2>/dev/null || true; }

# ask COMMAND...: ask our own server.
ask() { REDISCLI_AUTH=$(<"$home/password") redis-cli -h "$host" -p "$(port)" "$@"; }

# is_up: succeed if our own server is running and answers.
is_up() { ! is_down && [ "$(ask ping 2>/dev/null)" = PONG ]; }

# is_lost: succeed if our server has given up because another process listens on its port.
is_lost() { grep -qs 'Failed listening on port' "$home/log"; }

is_decided() { is_up || is_lost; }

# choose_port: set the port to base-port plus the unit's number. If base-port is not set, keep
# the port that was chosen before, or choose a free one.
choose_port() {
    local base
    base=$(config-get base-port)
    if [ "$base" -gt 0 ]; then
        echo $((base + ${self##*/})) > "$home/port"
    elif [ ! -s "$home/port" ]; then
        free_port > "$home/port"
    fi
}

# free_port: print a port on which no process listens. It is below the ports that the
# kernel uses for outgoing connections.
free_port() {
    local p
    while p=$((RANDOM % 10000 + 20000)); (: < "/dev/tcp/$host/$p") 2>/dev/null; do :; done
    echo "$p"
}

# write_conf: render redis.conf.
write_conf() {
    cat > "$home/redis.conf.new" <<CONF
bind $host
port $(port)
daemonize yes
supervised no
dir "$home/data"
pidfile "$home/pid"
logfile "$home/log"
requirepass $(<"$home/password")
appendonly yes
save ""
repl-diskless-sync-delay 0
$(replication)
CONF
    mv "$home/redis.conf.new" "$home/redis.conf"
}

# replication: print the lines of redis.conf that make us a replica, if we are one.
replication() {
    local unit where number secret
    [ -s "$home/primary" ] || return 0
    read -r unit where number secret < "$home/primary"
    if [ "$unit" != "$self" ]; then
        echo "replicaof $where $number"
        echo "masterauth $secret"
    fi
}

# start_server: start the server, unless it is up. If another process has taken our port
# since it was chosen, and the configuration does not set the port, choose another port.
start_server() {
    local i
    is_up && return
    for ((i = 0; i < 10; i++)); do
        choose_port
        write_conf
        rm -f "$home/pid" "$home/log"
        redis-server "$home/redis.conf"
        wait_until is_decided || break
        if is_up; then
            open-port "$(port)/tcp"
            return
        fi
        rm -f "$home/port"
    done
    echo "cannot start redis-server:" >&2
    tail -n 5 "$home/log" >&2
    return 1
}

# server_pid: print the process id of our running server, if there is one. An old pid file
# may name a different process.
server_pid() {
    local pid
    [ -s "$home/pid" ] && read -r pid < "$home/pid" || return 0
    if [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(readlink -f "$home/data")" ]; then
        echo "$pid"
    fi
}

is_down() { [ -z "$(server_pid)" ]; }

# stop_server: stop the server, and return when it has exited.
stop_server() {
    local pid
    if [ -s "$home/port" ]; then
        close-port "$(port)/tcp"
    fi
    pid=$(server_pid)
    if [ "$pid" ]; then
        kill "$pid"
        wait_until is_down || kill -9 "$pid"
        wait_until is_down
    fi
}

# wait_until COMMAND: repeat the command until it succeeds, for up to twenty seconds.
wait_until() {
    local i
    for ((i = 0; i < 400; i++)); do
        "$1" && return
        sleep 0.05
    done
    return 1
}

# elect: find the primary. It is the unit with the lowest number among all units that have
# announced their addresses. In the end all units see the same units, so they choose the
# same primary.
elect() {
    local id unit best=$self values=
    for id in $(relation-ids cluster); do
        for unit in $(relation-list -r "$id"); do
            if [ "${unit##*/}" -lt "${best##*/}" ] && [ "$(address_of "$id" "$unit")" ]; then
                best=$unit
                values=$(address_of "$id" "$unit")
            fi
        done
    done
    if [ "$best" = "$self" ]; then
        values="$host $(port) $(<"$home/password")"
    fi
    follow "$best $values"
    announce
}

# address_of RELATION UNIT: print host, port and password of another unit. Print nothing
# while one of them is missing.
address_of() {
    local h p s
    h=$(relation-get -r "$1" host "$2")
    p=$(relation-get -r "$1" port "$2")
    s=$(relation-get -r "$1" password "$2")
    if [ "$h" ] && [ "$p" ] && [ "$s" ]; then
        echo "$h $p $s"
    fi
}

# follow "UNIT HOST PORT PASSWORD": make that unit the primary of our server.
follow() {
    local unit where number secret
    echo "$1" > "$home/primary"
    write_conf
    # A server that is started later reads the configuration.
    is_up || return 0
    read -r unit where number secret <<< "$1"
    if [ "$unit" = "$self" ]; then
        ask replicaof no one > /dev/null
        status-set active "primary on port $(port)"
    else
        ask config set masterauth "$secret" > /dev/null
        ask replicaof "$where" "$number" > /dev/null
        status-set active "replica of $unit"
    fi
}

# announce: set our address for our peers, and the address of the primary for our clients.
announce() {
    local id unit where number secret
    for id in $(relation-ids cluster); do
        tell "$id" host="$host" port="$(port)" password="$(<"$home/password")"
    done
    read -r unit where number secret < "$home/primary"
    for id in $(relation-ids db); do
        tell "$id" host="$where" port="$number" password="$secret" primary="$unit"
    done
}

# tell RELATION KEY=VALUE...: set the values in the relation. If this unit has not entered
# the relation yet, the joined hook sets them later.
tell() { relation-set -r "$@" || juju-log "cannot tell relation $1 yet"; }
