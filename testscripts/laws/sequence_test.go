package laws

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestJoinAndOrSequenceNoWork checks the arguments of errors.Join and cmp.Or. Go evaluates all of them,
// so a call among them that does work runs even if an earlier one failed.
func TestJoinAndOrSequenceNoWork(t *testing.T) {
	p := newProgram(t, "bijou/...")
	p.addModule(t)

	for _, w := range p.findWork() {
		t.Errorf("%s:%d: an argument of %s calls %s.\n  law: errors.Join and cmp.Or take values, pure checks and clean-ups\n"+
			"  why: they evaluate all arguments, and so this one runs although an earlier one failed; return early instead", w.at.Filename, w.at.Line, w.of, w.calls)
	}

	for _, name := range slices.Sorted(maps.Keys(cleanUps())) {
		if !p.cleaned[name] {
			t.Errorf("no argument of errors.Join or cmp.Or calls %s: remove its line from cleanUps", name)
		}
	}
	if p.looked < 250 {
		t.Errorf("the law looked at %d calls of errors.Join and cmp.Or, fewer than there are", p.looked)
	}
}

// cleanUps lists the calls that must run even if an earlier step failed, with the reason. Each call releases
// a resource or removes a file of an earlier step. A call that creates, changes or sends anything else must
// not be on this list. A method Close without arguments needs no entry.
func cleanUps() map[string]string {
	return map[string]string{
		"os.Remove":                      "it removes the draft or the socket of the step that failed",
		"os.RemoveAll":                   "it removes the scratch directory of the step that failed",
		"bijou/multicall/home.removeAll": "it is os.RemoveAll for directories that a charm made read-only",

		"bijou/agent.RemoveSockets":                        "it removes the sockets of processes that have ended",
		"(bijou/state/unitdir.Folder).restoreOldCharm":     "it puts the charm back that was set aside",
		"(bijou/multicall/juju.asideFolder).undo":          "it puts back what was set aside",
		"(bijou/multicall/juju.asideFolders).undo":         "it puts back what was set aside",
		"(*bijou/multicall/tour.tour).cleanUp":             "it removes the tour's environment",
		"(*bijou/multicall/home.FolderLock).Remove":        "it removes the directory of an environment that was not made",
		"(*bijou/multicall/juju.bootstrap).undo":           "it undoes a bootstrap",
		"(*bijou/multicall/juju.operator).cancelQueued":    "it cancels the actions that were queued before the failure",
		"(bijou/provision/nspawn.launch).abort":            "it ends a container that did not come up",
		"(*bijou/provision/ssh.Provider).removeRecord":     "it takes back the record of a host that was not claimed",
		"bijou/state/osutil.ReleaseMount":                  "it unbinds a directory",
		"bijou/state/unitdir.ReleaseUnit":                  "it unbinds the directories of a unit",
		"bijou/state/osutil.Unmount":                       "it unbinds a directory",
		"(*bijou/state/copying.copyLock).release":          "it gives the environment back",
		"(*bijou/testscripts/fakes/etcdtest.Cluster).Stop": "it ends the processes of a test",
		"(*bijou/testscripts/fakes/etcdtest.Member).Kill":  "it ends a process of a test",
	}
}

// pureCalls lists functions that only compute, or read the state of the process, and whose bodies the
// law cannot read: they belong to interfaces and other modules.
func pureCalls() []string {
	return []string{
		"(*modernc.org/sqlite.Error).Code",
		"(*os.File).Name",
		"(context.Context).Err",
		"(error).Error",
		"(fmt.Stringer).String",
		"(golang.org/x/crypto/ssh.PublicKey).Type",
		"(io/fs.DirEntry).Name",
		"(reflect.StructTag).Get",
		"fmt.Errorf",
		"fmt.Sprint",
		"fmt.Sprintf",
		"log/slog.Default",
		"os.Getenv",
	}
}

// purePackages lists packages whose functions change only the memory that is passed to them. For each package
// it lists the exceptions: functions that do more, or that read the clock.
func purePackages() map[string][]string {
	return map[string][]string{
		"cmp":           nil,
		"encoding/hex":  nil,
		"errors":        nil,
		"maps":          nil,
		"math":          nil,
		"net/netip":     nil,
		"net/url":       nil,
		"path":          nil,
		"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
		"regexp":        nil,
		"slices":        nil,
		"strconv":       nil,
		"strings":       nil,
		"time":          {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
		"unicode":       nil,
		"unicode/utf8":  nil,
	}
}

// program holds type-checked packages, and knows which of their functions only compute.
type program struct {
	fset    *token.FileSet
	own     []listed
	imports types.Importer

	packages  []checkedPackage
	functions map[string]function
	once      map[string]function // package variables made by sync.OnceValue, by path and name
	pure      map[string]bool     // by full name; a missing function was not judged yet

	looked  int             // calls of errors.Join and cmp.Or
	cleaned map[string]bool // the clean-ups among their arguments, by full name
}

// listed is the output of `go list -export` for a package of the module.
type listed struct {
	ImportPath string
	Dir        string
	Export     string // the file with its types, made by the compiler
	GoFiles    []string
	Module     *struct{ Main bool }
}

// checkedPackage is one package with the types of its names.
type checkedPackage struct {
	files []*ast.File
	info  *types.Info
}

// function is one function with a body, and the types of the names in it.
type function struct {
	decl ast.Node
	body *ast.BlockStmt
	info *types.Info
}

// work is an argument of errors.Join or cmp.Or that does work.
type work struct {
	at    token.Position
	of    string
	calls string
}

// newProgram returns a program without packages. It can import the packages that the patterns name, and
// everything that these import.
func newProgram(t *testing.T, patterns ...string) *program {
	t.Helper()

	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Module"}, patterns...)
	list := exec.Command("go", args...)
	list.Dir = "../.."
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}

	p := &program{fset: token.NewFileSet()}
	p.forget()
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		exports[l.ImportPath] = l.Export
		if l.Module != nil && l.Module.Main {
			p.own = append(p.own, l)
		}
	}
	p.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return p
}

// forget removes all packages from a program.
func (p *program) forget() {
	p.packages = nil
	p.functions = map[string]function{}
	p.once = map[string]function{}
	p.pure = map[string]bool{}
	p.cleaned = map[string]bool{}
}

// addModule adds all listed packages of the module.
func (p *program) addModule(t *testing.T) {
	t.Helper()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range p.own {
		folder, err := filepath.Rel(root, l.Dir)
		if err != nil {
			t.Fatal(err)
		}
		sources := map[string]string{}
		for _, name := range l.GoFiles {
			text, err := os.ReadFile(filepath.Join(l.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			sources[filepath.Join(folder, name)] = string(text)
		}
		p.add(t, l.ImportPath, sources)
	}
}

// add type-checks one package from its sources by file name.
func (p *program) add(t *testing.T, importPath string, sources map[string]string) {
	t.Helper()

	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(p.fset, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}

	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: p.imports}
	if _, err := config.Check(importPath, p.fset, files, info); err != nil {
		t.Fatalf("cannot check the types of %s: %v", importPath, err)
	}

	p.packages = append(p.packages, checkedPackage{files, info})
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				p.functions[info.Defs[f.Name].(*types.Func).FullName()] = function{f, f.Body, info}
			}
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				p.addOnce(importPath, d, info)
			}
		}
	}
}

// addOnce adds the package variables that sync.OnceValue makes from a function literal. Nobody assigns
// to a package variable, so a call of one is a call of that literal.
func (p *program) addOnce(importPath string, d *ast.GenDecl, info *types.Info) {
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		for i, value := range spec.Values {
			call, ok := value.(*ast.CallExpr)
			if !ok || calledName(info, call) != "sync.OnceValue" {
				continue
			}
			if literal, ok := call.Args[0].(*ast.FuncLit); ok {
				p.once[importPath+"."+spec.Names[i].Name] = function{literal, literal.Body, info}
			}
		}
	}
}

// findWork returns the arguments of errors.Join and cmp.Or that do work, in order.
func (p *program) findWork() []work {
	var found []work
	for _, c := range p.packages {
		look := func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := calledName(c.info, call)
			if name != "errors.Join" && name != "cmp.Or" {
				return true
			}

			p.looked++
			for _, arg := range call.Args {
				if calls := p.firstWork(c.info, arg, arg, p.isCleanUp); calls != "" {
					found = append(found, work{p.fset.Position(arg.Pos()), name, calls})
				}
			}
			return true
		}
		for _, file := range c.files {
			ast.Inspect(file, look)
		}
	}

	slices.SortStableFunc(found, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Line, b.at.Line))
	})
	return found
}

// firstWork returns the first call or statement in a syntax tree that does more than compute, or "".
// Functions that allowed accepts do not count as work.
//
// Everything in a function literal counts as if the literal were called. A function that is only named counts
// in the same way, since a callee may call it. A parameter that is a function was judged at the place where
// the caller passed it. Variables that are declared in scope may change.
func (p *program) firstWork(info *types.Info, scope, syntax ast.Node, allowed func(*types.Func) bool) (found string) {
	assign := func(to ast.Expr) {
		if to != nil && found == "" && !isLocal(info, scope, to) {
			found = "nothing, but changes " + types.ExprString(to)
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			switch object := info.Uses[n].(type) {
			case *types.Func:
				if f := object.Origin(); !allowed(f) && !p.isPure(f) {
					found = f.FullName()
				}
			case *types.Var:
				if isFunction(object) && !(scope.Pos() <= object.Pos() && object.Pos() < scope.End()) && !p.isPureOnce(object) {
					found = object.Name()
				}
			}
		case *ast.CallExpr:
			if !isPlainCall(info, n) {
				found = types.ExprString(n.Fun)
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				assign(to)
			}
		case *ast.IncDecStmt:
			assign(n.X)
		case *ast.RangeStmt:
			assign(n.Key)
			assign(n.Value)
			if _, ok := info.TypeOf(n.X).Underlying().(*types.Chan); ok {
				found = "a channel"
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				found = "a channel"
			}
		case *ast.SendStmt, *ast.SelectStmt:
			found = "a channel"
		case *ast.GoStmt:
			found = "a goroutine"
		}
		return found == ""
	})
	return found
}

// isPure reports whether a function only computes: it is in one of the lists, or its known body does no work.
// A recursive function is pure if the rest of its body is.
func (p *program) isPure(f *types.Func) bool {
	name := f.FullName()
	if slices.Contains(pureCalls(), name) {
		return true
	}
	if f.Pkg() != nil {
		if except, ok := purePackages()[f.Pkg().Path()]; ok {
			return !slices.Contains(except, f.Name())
		}
	}
	of, ok := p.functions[name]
	if !ok {
		return false
	}

	return p.judge(name, of)
}

// isPureOnce reports whether sync.OnceValue made a package variable from a function that only computes.
// Its result is then the same at each call.
func (p *program) isPureOnce(v *types.Var) bool {
	if v.Pkg() == nil {
		return false
	}
	name := v.Pkg().Path() + "." + v.Name()
	of, ok := p.once[name]
	return ok && p.judge(name, of)
}

// judge reports whether a function only computes, and remembers the answer by name.
func (p *program) judge(name string, of function) bool {
	if pure, ok := p.pure[name]; ok {
		return pure
	}

	p.pure[name] = true
	none := func(*types.Func) bool { return false }
	if p.firstWork(of.info, of.decl, of.body, none) == "" {
		return true
	}
	// Other answers may depend on this one.
	maps.DeleteFunc(p.pure, func(_ string, pure bool) bool { return pure })
	p.pure[name] = false
	return false
}

func (p *program) isCleanUp(f *types.Func) bool {
	_, listed := cleanUps()[f.FullName()]
	if listed {
		p.cleaned[f.FullName()] = true
	}
	signature := f.Signature()
	return listed || f.Name() == "Close" && signature.Recv() != nil && signature.Params().Len() == 0
}

// isPlainCall reports whether a call names its function, or calls a literal, or is a conversion or a
// builtin that only computes. Functions and variables with names are judged by their names.
func isPlainCall(info *types.Info, call *ast.CallExpr) bool {
	kind := info.Types[call.Fun]
	if kind.IsBuiltin() {
		name := types.ExprString(call.Fun)
		return !slices.Contains([]string{"clear", "close", "copy", "delete", "panic", "print", "println"}, name)
	}
	if kind.IsType() || calledFunction(info, call) != nil {
		return true
	}
	switch ast.Unparen(call.Fun).(type) {
	case *ast.FuncLit, *ast.Ident, *ast.SelectorExpr:
		return true
	}
	return false
}

func isFunction(v *types.Var) bool {
	_, ok := v.Type().Underlying().(*types.Signature)
	return ok
}

// isLocal reports whether an assignment changes a variable that is declared within scope. The target of
// a pointer parameter is not local.
func isLocal(info *types.Info, scope ast.Node, to ast.Expr) bool {
	within := scope
	for {
		switch e := to.(type) {
		case *ast.Ident:
			object := info.ObjectOf(e)
			return object == nil || within.Pos() <= object.Pos() && object.Pos() < within.End()
		case *ast.ParenExpr:
			to = e.X
			continue
		case *ast.IndexExpr:
			to = e.X
		case *ast.SelectorExpr:
			to = e.X
		default:
			return false
		}
		// The parameters of a declaration come before its body.
		if decl, ok := scope.(*ast.FuncDecl); ok && !isStruct(info, to) {
			within = decl.Body
		}
	}
}

// isStruct reports whether an expression is itself a struct, and not a pointer, map or slice.
func isStruct(info *types.Info, e ast.Expr) bool {
	_, ok := info.TypeOf(e).Underlying().(*types.Struct)
	return ok
}

// calledFunction returns the function or method that a call names. It returns nil if the call is of a
// value.
func calledFunction(info *types.Info, call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) {
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}

	var name *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	default:
		return nil
	}
	f, ok := info.Uses[name].(*types.Func)
	if !ok {
		return nil
	}
	return f.Origin()
}

// calledName returns the full name of the function that a call names. It returns "" if the call is of a
// value.
func calledName(info *types.Info, call *ast.CallExpr) string {
	f := calledFunction(info, call)
	if f == nil {
		return ""
	}
	return f.FullName()
}

// TestSequenceLawFindsWork checks that the law finds planted arguments that do work, and accepts planted
// arguments that do not.
func TestSequenceLawFindsWork(t *testing.T) {
	const declarations = `package planted

import ("cmp"; other "errors"; "fmt"; "io"; "os"; "slices"; "strings"; "sync")

var _ = other.New
var _ = fmt.Errorf
var _ = slices.Sort[[]string]
var _ = strings.Cut
var _ = cmp.Compare[int]

var count int

var computed = sync.OnceValue(func() string { return strings.ToUpper("a") })
var removed = sync.OnceValue(func() string { os.Remove("f"); return "" })

type counter struct { n int; then func() error }

var table = map[string]func() error{}

func write() error { return os.WriteFile("f", nil, 0o600) }
func writeDeep(n int) error { if n == 0 { return check("") }; return writeDeeper(n) }
func writeDeeper(n int) error { if n == 1 { return writeDeep(n - 1) }; return write() }
func change() error { count++; return nil }
func (c *counter) add() error { c.n++; return nil }
func (c counter) added() error { c.n++; return nil }
func (c *counter) stored() error { return c.then() }
func apply(f func() error) error { return f() }
func send(to chan int) error { to <- 1; return nil }
func isGone(name string) bool { return os.Remove(name) == nil }
func check(s string) error {
	all := map[string]bool{}
	for _, part := range strings.Fields(s) { all[part] = true }
	if len(all) == 0 { return fmt.Errorf("%q is empty", s) }
	return nil
}
func even(n int) error { if n == 0 { return nil }; return odd(n - 1) }
func odd(n int) error { if n == 0 { return fmt.Errorf("odd") }; return even(n - 1) }

func planted(err error, errs []error, f *os.File, c *counter, names []string, value func() error, to chan int, w io.WriteCloser) any {
	return %s
}
`
	p := newProgram(t, "cmp", "errors", "fmt", "io", "os", "slices", "strings", "sync")
	for _, test := range []struct{ expression, calls string }{ // calls; "" means none
		{`other.Join(err, write())`, "planted.write"},
		{`other.Join(write(), err)`, "planted.write"},
		{`cmp.Or(err, write())`, "planted.write"},
		{`cmp.Or[error](err, write())`, "planted.write"},
		{`other.Join(err, writeDeep(3))`, "planted.writeDeep"},
		{`other.Join(err, writeDeeper(3))`, "planted.writeDeeper"},
		{`other.Join(odd(3), writeDeeper(3), writeDeep(3))`, "planted.writeDeeper"},
		{`other.Join(err, fmt.Errorf("it is: %w", write()))`, "planted.write"},
		{`other.Join(append(errs, write())...)`, "planted.write"},
		{`other.Join(err, func() error { return write() }())`, "planted.write"},
		{`other.Join(err, func() error { count = 1; return nil }())`, "nothing, but changes count"},
		{`other.Join(err, func() error { defer f.Sync(); return nil }())`, "(*os.File).Sync"},
		{`other.Join(err, func() error { go f.Name(); return nil }())`, "a goroutine"},
		{`other.Join(err, os.Rename("a", "b"))`, "os.Rename"},
		{`other.Join(err, f.Sync(), f.Close())`, "(*os.File).Sync"},
		{`other.Join(err, change())`, "planted.change"},
		{`other.Join(err, c.add())`, "(*planted.counter).add"},
		{`other.Join(err, value())`, "value"},
		{`other.Join(err, apply(value))`, "value"},
		{`other.Join(err, apply(write))`, "planted.write"},
		{`other.Join(err, c.stored())`, "(*planted.counter).stored"},
		{`other.Join(err, table["a"]())`, `table["a"]`},
		{`other.Join(err, send(to))`, "planted.send"},
		{`cmp.Or(<-to, 1)`, "a channel"},
		{`cmp.Or(removed(), "a")`, "removed"},
		{`cmp.Or(slices.IndexFunc(names, isGone), 1)`, "planted.isGone"},
		{`other.Join(other.Join(err, write()), err)`, "planted.write"},

		{`other.Join(err, err)`, ""},
		{`other.Join(errs...)`, ""},
		{`other.Join(fmt.Errorf("no: %w", err), f.Close(), os.Remove(f.Name()))`, ""},
		{`other.Join(err, w.Close())`, ""},
		{`cmp.Or(check("a"), check("b"), even(3))`, ""},
		{`cmp.Or(computed(), "a")`, ""},
		{`other.Join(err, func() error { n := 1; n++; return even(n) }())`, ""},
		{`other.Join(err, c.added())`, ""},
		{`cmp.Or(os.Getenv("A"), strings.ToUpper("b"), string(names[0]))`, ""},
		{`other.Join(err, apply(func() error { return check("a") }))`, ""},
		{`write()`, ""},
	} {
		t.Run(test.expression, func(t *testing.T) {
			p.forget()
			p.add(t, "planted", map[string]string{"planted.go": strings.Replace(declarations, "%s\n}\n", test.expression+"\n}\n", 1)})

			calls := ""
			if found := p.findWork(); len(found) > 0 {
				calls = found[0].calls
			}
			if calls != test.calls {
				t.Errorf("the law found %q, want %q", calls, test.calls)
			}
		})
	}
}
