package updater

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bijou/state"
	"bijou/updater/release"
)

// Upstream's fault: of ten servers, sorted as strings, three thought that it was
// their turn, and three members of etcd were restarted at once.
func TestTwelveMembers(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = release.Manifest{Version: "1.1", Components: []release.Component{{Name: "etcd", Strategy: release.Rolling}}}
		var down, most, all atomic.Int64
		var lrns []int
		for lrn := range 12 {
			f := &fake{needs: map[string]bool{"etcd": true}}
			f.on = func(string) {
				now := down.Add(1)
				for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
				}
				for range 20 { // another would come meanwhile, if it could
					_ = r.store.View(t.Context(), func(v *state.KeyView) error { _, err := v.List(""); return err })
				}
				all.Add(1)
				down.Add(-1)
			}
			lrns = append(lrns, lrn)
			r.worker(lrn, t.TempDir(), f, WorkerOptions{})
		}
		r.updater(nil)
		r.begin("1.1", lrns...)
		r.await("success", succeeded)
		if most.Load() != 1 || all.Load() != 12 {
			r.t.Errorf("%d members were updated, %d at once", all.Load(), most.Load())
		}
	})
}

// Upstream's fault: fixed sleeps in place of health checks. Nothing of the updater
// sleeps: whatever waits can be told to end, and looks at what it waits for.
func TestNothingSleeps(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" && slices.Contains([]string{"time", "unix"}, name(s.X)) {
				t.Errorf("%s sleeps", set.Position(s.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files: %v", files, err)
	}
}

// name is an identifier's.
func name(x ast.Expr) string {
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
