package dashboard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArrange checks that services are above the services that they require, that related services are
// neighbours, and that unrelated services come last.
func TestArrange(t *testing.T) {
	g := graph{boxes: []string{"api", "cache", "db", "lonely", "proxy", "queue", "web"},
		lines: [][2]string{{"proxy", "web"}, {"proxy", "api"}, {"web", "db"}, {"web", "cache"}, {"api", "queue"}, {"api", "api"}}}
	want := [][]string{{"proxy"}, {"api", "web"}, {"queue", "cache", "db"}, {"lonely"}}
	if diff := cmp.Diff(want, g.arrange()); diff != "" {
		t.Error(diff)
	}
}

// TestArrangeAnything checks random graphs, including ones with cycles. Each box must appear once, and in the
// same place each time. In a graph without cycles each line must lead down.
func TestArrangeAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		g := graph{}
		for i := range 1 + random.IntN(14) {
			g.boxes = append(g.boxes, fmt.Sprintf("box%02d", i))
		}
		for range random.IntN(30) {
			a, b := random.IntN(len(g.boxes)), random.IntN(len(g.boxes))
			if round%2 == 0 && a > b {
				a, b = b, a
			}
			g.lines = append(g.lines, [2]string{g.boxes[a], g.boxes[b]})
		}
		rows := g.arrange()
		if diff := cmp.Diff(rows, g.arrange()); diff != "" {
			t.Fatalf("%v is arranged in two ways: %s", g, diff)
		}
		if all := slices.Concat(rows...); !slices.Equal(slices.Sorted(slices.Values(all)), g.boxes) {
			t.Fatalf("%v: %v", g, rows)
		}
		at := func(box string) int {
			return slices.IndexFunc(rows, func(row []string) bool { return slices.Contains(row, box) })
		}
		for _, l := range g.lines {
			if round%2 == 0 && l[0] != l[1] && at(l[0]) >= at(l[1]) {
				t.Fatalf("%v: %v does not lead down in %v", g, l, rows)
			}
		}
	}
}
