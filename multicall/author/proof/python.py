"""Reads Python sources, {file: text} on stdin, and prints what proof asks of each. It runs none."""
import ast
import importlib.machinery
import json
import resource
import sys
import warnings

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
warnings.simplefilter("ignore")
STANDARD = getattr(sys, "stdlib_module_names", None)


def is_known(name):
    if STANDARD is None or name in STANDARD or name in sys.builtin_module_names:
        return True
    return importlib.machinery.PathFinder.find_spec(name) is not None


def imports(body):
    """What is imported whenever the file is: not in functions, conditions and what catches a failure."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0], node.lineno


def words(nodes):
    argv = []
    for node in nodes:
        known = isinstance(node, ast.Constant) and isinstance(node.value, str)
        argv.append(node.value if known else "")
    return argv


def is_open(nodes):
    """Whether a word can be an option, or many words."""
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = node.left
        if isinstance(node, ast.JoinedStr) and node.values:
            node = node.values[0]
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return True
    return False


def calls(tree):
    """Calls like run(["status-set", "active"]) and call("status-set", "active")."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        nodes = first.elts if isinstance(first, (ast.List, ast.Tuple)) else node.args
        argv = words(nodes)
        if argv and "-" in argv[0] and " " not in argv[0]:
            yield {"Line": node.lineno, "Argv": argv, "Open": is_open(nodes)}


found = {}
for file, text in json.load(sys.stdin).items():
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        found[file] = {"Error": {"Line": e.lineno or 0, "Message": e.msg}}
        continue
    except Exception:
        continue
    found[file] = {
        "Imports": [{"Name": n, "Line": l} for n, l in imports(tree.body) if not is_known(n)],
        "Calls": list(calls(tree)),
    }
json.dump(found, sys.stdout)
