"""What each hook asks, and what it must hear. What is right is counted in
$JUJU_UNIT_DIR/checks; what is wrong ends the hook."""

import ipaddress
import os
import subprocess

import framework as ops
import helpers

UNIT = os.environ["JUJU_UNIT_NAME"]
APP = UNIT.split("/")[0]


class Count:
    right = 0


def same(what, got, want):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))
    Count.right += 1


def fails(what, error, call, *arguments):
    """Answers the error, which must come."""
    try:
        got = call(*arguments)
    except error as e:
        Count.right += 1
        return e
    raise AssertionError("%s: got %r, want an error" % (what, got))


def run(name):
    globals().get(name.replace("-", "_"), nothing)()
    with open(os.path.join(os.environ["JUJU_UNIT_DIR"], "checks"), "a") as f:
        f.write("%s: %d\n" % (name, Count.right))


def nothing():
    pass


def install():
    same("juju-log", helpers.log("hi"), 0)
    same("juju-log of a level nobody knows", helpers.log("hi", "LOUD"), 0)
    for level in "TRACE", "DEBUG", "INFO", "WARNING", "ERROR":
        ops.juju_log(level, "--not an option, %s; -- nor this" % level)
    same("a tool that is not there", helpers.tolerant("no-such-tool"), None)
    settings()
    statuses()
    ports()
    notes()
    version = helpers.juju_version()
    if version is not None:
        same("jujud version", version.split(".")[0].isdigit(), True)


def settings():
    want = {"title": "a title", "port": 8080, "ratio": 0.5, "debug": True}
    same("config-get --all", helpers.config(), want | {"unset": None})
    same("config-get", ops.config_get(), want)
    same("unit-get", ipaddress.ip_address(helpers.unit_get("private-address")).is_loopback, True)


def statuses():
    ops.status_set("maintenance", "installing")
    same("status-get", helpers.status_get(), ("maintenance", "installing"))
    ops.status_set("active", "-- ready", separated=True)
    same("status-get", ops.status_get(), ("active", "-- ready"))
    same("status-set", helpers.status_set("waiting", ""), 0)
    same("status-get", ops.status_get(), ("waiting", ""))
    same("status-set of no status", helpers.status_set("busy", ""), 2)
    helpers.application_version_set("1")
    ops.application_version_set("1.2")


def ports():
    helpers.open_port(80)
    helpers.open_port("10-20")
    helpers.open_port(0, "ICMP")
    ops.open_port("tcp", 80)
    ops.open_port("udp", 53)
    same("opened-ports --format=json", sorted(helpers.opened_ports()), ["10-20/tcp", "53/udp", "80/tcp", "icmp"])
    same("opened-ports", ops.opened_ports(), {("tcp", 10), ("udp", 53), ("tcp", 80), ("icmp", None)})
    helpers.close_port("10-20")
    helpers.close_port(0, "ICMP")
    ops.close_port("udp", 53)
    same("opened-ports", ops.opened_ports(), {("tcp", 80)})


def notes():
    same("state-get of nothing", ops.state_get("handles"), "")
    ops.state_set("handles", "'two words'")
    ops.state_set("other", "|\n  lines\n  of it")
    same("state-get", ops.state_get("handles"), "two words")
    ops.state_delete("handles")
    same("state-get", (ops.state_get("handles"), ops.state_get("other")), ("", "lines\nof it\n"))


def start():
    same("state-get in a later hook", ops.state_get("other"), "lines\nof it\n")
    networks()
    same("storage-list", helpers.storage_list(), [])
    said = fails("secret-get", ops.ModelError, ops.secret_get, "secret:9m4e2mr0ui3e8a215n4g")
    same("secret-get says one line", (str(said).startswith("ERROR "), str(said).count("\n")), (True, 1))
    same("goal-state", helpers.expected_peer_units(), [])
    same("goal-state", ops.planned_units(), 1)
    same("relation-ids of nothing", (helpers.relation_ids("nosuch"), ops.relation_ids("nosuch")), ([], []))
    same("relation-get with no relation", helpers.relation_get(), None)
    fails("relation-list", ops.RelationNotFound, ops.relation_list, 999)
    fails("relation-get", ops.RelationNotFound, ops.relation_get, 999, "mysql/0")
    fails("relation-set", ops.RelationNotFound, ops.relation_set, 999, "a", "b")
    fails("network-get", ops.RelationNotFound, ops.network_get, "db", 999)


def leader_elected():
    same("is-leader", (helpers.is_leader(), ops.is_leader()), (True, True))
    helpers.leader_set(a="b", c="d")
    helpers.leader_set(c=None)
    same("leader-get", helpers.leader_get(), {"a": "b"})
    same("leader-get a", helpers.leader_get("a"), "b")
    same("leader-get of nothing", helpers.leader_get("nosuch"), None)
    ops.app_status_set("active", "as a whole")
    same("status-get --application", ops.status_get(app=True), ("active", "as a whole"))


def networks():
    for binding in "db", "server", "ring", "public":
        address = helpers.network_get_primary_address(binding)
        same(binding, address, helpers.unit_get("private-address"))
        network = ops.network_get(binding)
        same(binding, [str(a) for a in network["ingress"]], [address])
        same(binding, len(network["interfaces"]) > 0 and len(network["egress"]) > 0, True)
    fails("network-get", helpers.NoNetworkBinding, helpers.network_get_primary_address, "nosuch")
    fails("network-get", ops.ModelError, ops.network_get, "nosuch")


def server_relation_joined():
    """This end tells; the other one checks."""
    relation = os.environ["JUJU_RELATION_ID"]
    helpers.relation_set(relation, {"user": "root", "old": "1", "quoted": "it's \"so\": #1"})
    helpers.relation_set(None, {"old": None, "number": "1"})
    number = int(relation.split(":")[-1])
    ops.relation_set(number, "host", "10.0.0.1")
    ops.relation_set(relation, "version", "'8'", app=True)
    same("own settings", ops.relation_get(number, APP, app=True), {"version": "8"})
    own = helpers.relation_get(unit=UNIT)
    same("own settings", {k: own[k] for k in ("user", "quoted", "number", "host")},
         {"user": "root", "quoted": "it's \"so\": #1", "number": "1", "host": "10.0.0.1"})
    same("what was deleted", helpers.relation_get("old", UNIT), None)
    ops.relation_set(number, "host", "")
    same("what was deleted", "host" in ops.relation_get(number, UNIT), False)


def db_relation_changed():
    remote, relation = os.environ["JUJU_REMOTE_UNIT"], os.environ["JUJU_RELATION_ID"]
    if helpers.relation_get("user") is None:
        return
    service, number = remote.split("/")[0], int(relation.split(":")[-1])
    same("JUJU_RELATION_ID", relation, "db:%d" % number)
    reading(remote, service, relation, number)
    membership(remote, service, relation, number)
    ops.relation_set(number, "answer", "'42'")
    helpers.relation_set(relation, {"thanks": UNIT})
    same("own settings", helpers.relation_get("answer", UNIT, relation), "42")
    same("network-get of a relation", "ingress-addresses:" in helpers.network_get("db", relation), True)
    same("network-get of a relation", len(ops.network_get("db", number)["ingress"]), 1)
    helpers.status_set("active", "every answer was right")


def reading(remote, service, relation, number):
    whole = helpers.relation_get()
    same("relation-get -", {k: v for k, v in whole.items() if "address" not in k and "subnet" not in k},
         {"user": "root", "quoted": "it's \"so\": #1", "number": "1"})
    same("relation-get -r", helpers.relation_get("user", remote, relation), "root")
    same("relation-get of ops", ops.relation_get(number, remote), whole)
    same("relation-get --app", helpers.relation_get(app=service), {"version": "8"})
    same("relation-get --app of ops", ops.relation_get(number, service, app=True), {"version": "8"})
    same("no such setting", helpers.relation_get("nosuch"), None)
    unknown = fails("no such unit", subprocess.CalledProcessError, helpers.relation_get, "user", service + "/9", relation)
    same("no such unit", unknown.returncode, 1)


def membership(remote, service, relation, number):
    same("relation-ids", (helpers.relation_ids("db"), ops.relation_ids("db")), ([relation], [number]))
    same("relation-list", (helpers.related_units(relation), helpers.related_units()), ([remote], [remote]))
    same("relation-list of ops", (ops.relation_list(number), ops.remote_app(number)), ([remote], service))
    same("goal-state", helpers.expected_related_units("db"), [remote])


def probe():
    """The action."""
    same("action-get", helpers.action_get("text"), "hi there")
    same("action-get", helpers.action_get("nosuch"), None)
    same("action-get", (helpers.action_get(), ops.action_get()), ({"text": "hi there", "number": 7},) * 2)
    helpers.action_set(first="1")
    ops.action_log("working on it")
    ops.action_set({"outcome.text": "done", "checks": Count.right})
    same("the tools of hooks", helpers.relation_ids("db") != [], True)
