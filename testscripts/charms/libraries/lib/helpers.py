"""The tools as charm-helpers calls them, and what it makes of their answers."""

import errno
import glob
import json
import os
import subprocess
import tempfile


class NoNetworkBinding(Exception):
    pass


def output(*argv):
    return subprocess.check_output(argv).decode("UTF-8")


def answer(*argv):
    return json.loads(output(*argv))


def tolerant(*argv):
    """Runs a tool that need not exist; its exit code, or None without one."""
    try:
        return subprocess.call(argv)
    except OSError as e:
        if e.errno == errno.ENOENT:
            return None
        raise


def log(message, level="INFO"):
    return tolerant("juju-log", "-l", level, message)


def config():
    return answer("config-get", "--all", "--format=json")


def relation_get(attribute=None, unit=None, rid=None, app=None):
    """None for no value: null, nothing at all, or exit code 2."""
    argv = ["relation-get", "--format=json"]
    if app is not None:
        argv.append("--app")
    if rid:
        argv += ["-r", rid]
    argv.append(attribute or "-")
    if app or unit:
        argv.append(app or unit)
    try:
        return answer(*argv)
    except ValueError:
        return None
    except subprocess.CalledProcessError as e:
        if e.returncode == 2:
            return None
        raise


def relation_set(rid, settings):
    """By a file of YAML, as the tool's help says that it can."""
    if "--file" not in subprocess.check_output(["relation-set", "--help"], universal_newlines=True):
        raise AssertionError("the help of relation-set does not know --file")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as f:
        for key, value in settings.items():
            f.write("%s: %s\n" % (key, "null" if value is None else "'%s'" % value.replace("'", "''")))
    try:
        argv = ["relation-set"] + (["-r", rid] if rid else [])
        subprocess.check_call(argv + ["--file", f.name])
    finally:
        os.remove(f.name)


def relation_ids(name):
    return answer("relation-ids", "--format=json", name) or []


def related_units(rid=None):
    return answer("relation-list", "--format=json", *(["-r", rid] if rid else [])) or []


def open_port(port, protocol="TCP"):
    subprocess.check_call(["open-port", "ICMP" if protocol == "ICMP" else "%s/%s" % (port, protocol)])


def close_port(port, protocol="TCP"):
    subprocess.check_call(["close-port", "ICMP" if protocol == "ICMP" else "%s/%s" % (port, protocol)])


def opened_ports():
    return answer("opened-ports", "--format=json")


def unit_get(name):
    return answer("unit-get", "--format=json", name)


def status_set(state, message):
    return tolerant("status-set", state, message)


def status_get():
    status = answer("status-get", "--format=json", "--include-data")
    return status["status"], status["message"]


def is_leader():
    return answer("is-leader", "--format=json")


def leader_get(key="-"):
    return answer("leader-get", "--format=json", key)


def leader_set(**settings):
    subprocess.check_call(["leader-set"] + ["%s=%s" % (k, "" if v is None else v) for k, v in settings.items()])


def application_version_set(version):
    return tolerant("application-version-set", version)


def goal_state():
    return answer("goal-state", "--format=json")


def expected_related_units(name):
    return [k for k in goal_state()["relations"][name] if "/" in k]


def expected_peer_units():
    return [k for k in goal_state()["units"] if k != os.environ["JUJU_UNIT_NAME"]]


def network_get_primary_address(binding):
    try:
        said = subprocess.check_output(["network-get", "--primary-address", binding], stderr=subprocess.STDOUT)
    except subprocess.CalledProcessError as e:
        if "no network config found for binding" in e.output.decode("UTF-8"):
            raise NoNetworkBinding(binding)
        raise
    return said.decode("UTF-8").strip()


def network_get(endpoint, rid=None):
    argv = ["network-get", endpoint, "--format", "yaml"] + (["-r", rid] if rid else [])
    return subprocess.check_output(argv, stderr=subprocess.STDOUT).decode("UTF-8").strip()


def storage_list():
    return answer("storage-list", "--format=json")


def action_get(key=None):
    return answer("action-get", *([key] if key else []), "--format=json")


def action_set(**values):
    subprocess.check_call(["action-set"] + ["%s=%s" % pair for pair in values.items()])


def juju_version():
    """None where no agent of Juju is installed."""
    for jujud in glob.glob("/var/lib/juju/tools/machine-*/jujud"):
        return output(jujud, "version").strip()
    return None
