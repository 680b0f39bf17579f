"""Reads Python sources, {file: text} on stdin, and prints the facts that proof needs about each. It does not run them."""
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
    """Yield the modules that the top level of a file imports, except in conditions and try blocks."""
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
    """Return whether a word can become an option, or several words."""
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = node.left
        if isinstance(node, ast.JoinedStr) and node.values:
            node = node.values[0]
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return True
    return False


def contains(text, node, words):
    """Return whether the source of a node has one of the words."""
    source = ast.get_source_segment(text, node) or ""
    return any(word in source for word in words)


def handlers(tree, text):
    """Return the functions that only handle events: {function: keys}, from dictionaries like {"start": begin}.

    A function is left out if the file uses it in any other way.
    """
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Name):
                    names.setdefault(value.id, []).append(key.value)
    uses = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    return {
        node.name: names[node.name]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in names and not node.decorator_list
        and uses.count(node.name) == len(names[node.name])
    }


def tables(tree):
    """Yield the keys of each dictionary from strings to functions: [(key, line)]."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and all(isinstance(v, (ast.Name, ast.Attribute, ast.Lambda)) for v in node.values):
            keys = [k for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
            yield [{"Name": k.value, "Line": k.lineno} for k in keys]


def hooks_of_calls(tree, text):
    """Return {call: (hooks, reads)} for the calls in functions that only handle these hooks.

    reads tells if the function reads facts about the hook, such as its relation, from the environment.
    """
    found = {}
    events = handlers(tree, text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, hooks in events.items():
        for node in ast.walk(functions[name]):
            if not isinstance(node, ast.Call):
                continue
            # A function that makes the call can add the relation.
            helper = functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
            if helper is None or not contains(text, helper, ["-r", "relation", "JUJU_"]):
                found[node] = hooks, contains(text, functions[name], ["JUJU_"])
    return found


def calls(tree, text):
    """Yield calls like run(["status-set", "active"]) and call("status-set", "active")."""
    hooks = hooks_of_calls(tree, text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        nodes = first.elts if isinstance(first, (ast.List, ast.Tuple)) else node.args
        argv = words(nodes)
        if argv and "-" in argv[0] and " " not in argv[0]:
            own, reads = hooks.get(node, ([], False))
            yield {"Line": node.lineno, "Argv": argv, "Open": is_open(nodes), "Hooks": own, "Reads": reads}


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
        "Calls": list(calls(tree, text)),
        "Tables": list(tables(tree)),
    }
json.dump(found, sys.stdout)
