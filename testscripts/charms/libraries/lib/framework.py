"""The tools as ops calls them, and what it makes of their answers."""

import ipaddress
import json
import shutil
import subprocess


class ModelError(Exception):
    pass


class RelationNotFound(ModelError):
    pass


class SecretNotFound(ModelError):
    pass


def run(*argv, use_json=False, text=None):
    """What the tool prints. An error is what it says on stderr."""
    path = shutil.which(argv[0])
    argv = [path or argv[0], *argv[1:]] + (["--format=json"] if use_json else [])
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, encoding="utf-8", input=text)
    except subprocess.CalledProcessError as e:
        raise failure(e.stderr)
    return json.loads(done.stdout) if use_json else done.stdout


def failure(said):
    if "relation not found" in said:
        return RelationNotFound(said)
    if 'secret "' in said and "not found" in said:
        return SecretNotFound(said)
    return ModelError(said)


def juju_log(level, message):
    run("juju-log", "--log-level", level, "--", message)


def status_set(state, message, separated=False):
    dashes = ["--"] if separated else []
    run("status-set", "--application=False", state, *dashes, message)


def app_status_set(state, message):
    run("status-set", "--application=True", state, message)


def status_get(app=False):
    said = run("status-get", "--include-data", "--application=%s" % app, use_json=True)
    if app:
        said = said["application-status"]
    return said["status"], said["message"]


def application_version_set(version):
    run("application-version-set", "--", version)


def open_port(protocol, port=None):
    run("open-port", protocol if port is None else "%s/%s" % (port, protocol))


def close_port(protocol, port=None):
    run("close-port", protocol if port is None else "%s/%s" % (port, protocol))


def opened_ports():
    """Lines of text: 80/tcp, 8000-8100/udp, icmp."""
    ports = set()
    for line in run("opened-ports").splitlines():
        first, slash, protocol = line.strip().partition("/")
        if not slash:
            ports.add((first, None))
            continue
        ports.add((protocol, int(first.split("-")[0])))
    return ports


def is_leader():
    return run("is-leader", use_json=True)


def config_get():
    return run("config-get", use_json=True)


def relation_ids(name):
    return [int(i.split(":")[-1]) for i in run("relation-ids", name, use_json=True)]


def relation_list(number):
    return run("relation-list", "-r", str(number), use_json=True)


def remote_app(number):
    return run("relation-list", "-r", str(number), "--app", use_json=True)


def relation_get(number, member, app=False):
    return run("relation-get", "-r", str(number), "-", member, *(["--app"] if app else []), use_json=True)


def relation_set(relation, key, value, app=False):
    """Value is as it stands in YAML; an empty one deletes the key."""
    flags = ["--app"] if app else []
    run("relation-set", "-r", str(relation), *flags, "--file", "-", text="%s: %s\n" % (key, value or "''"))


def network_get(binding, number=None):
    """Addresses and networks, all of them parsed."""
    argv = ["network-get"] + (["-r", str(number)] if number is not None else []) + [binding]
    said = run(argv[0], "--format=json", *argv[1:])
    said = json.loads(said)
    interfaces = []
    for interface in said.get("bind-addresses", []):
        name = interface.get("interface-name")
        for address in interface.get("addresses", []):
            value = address.get("value") or address.get("address")
            interfaces.append((name, ipaddress.ip_address(value), ipaddress.ip_network(address.get("cidr") or value)))
    return {
        "interfaces": interfaces,
        "egress": [ipaddress.ip_network(n) for n in said.get("egress-subnets", [])],
        "ingress": [ipaddress.ip_address(a) for a in said.get("ingress-addresses", [])],
    }


def state_get(key):
    return json.loads(run("state-get", "--format=json", key))


def state_set(key, value):
    run("state-set", "--file", "-", text="%s: %s\n" % (key, value))


def state_delete(key):
    run("state-delete", key)


def secret_get(uri):
    return run("secret-get", "--format=json", uri, "--refresh")


def planned_units():
    units = run("goal-state", use_json=True).get("units", {})
    return len([u for u in units.values() if u["status"] != "dying"])


def action_get():
    return run("action-get", use_json=True)


def action_set(results):
    run("action-set", *["%s=%s" % pair for pair in results.items()])


def action_log(message):
    run("action-log", "--", message)
