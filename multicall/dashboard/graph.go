package dashboard

import (
	"cmp"
	"slices"
)

// graph has the boxes of a diagram, and the lines between them. Each line leads from the requiring to the providing
// service.
type graph struct {
	boxes []string // sorted
	lines [][2]string
}

// arrange returns the boxes in rows, from top to bottom. A box is above the boxes to which its lines lead, except
// in a cycle. Within a row, boxes are placed so that few lines cross. Boxes without lines to other boxes come
// last.
func (g graph) arrange() [][]string {
	rank := g.rankBoxes()
	last := 0
	for _, r := range rank {
		last = max(last, r)
	}
	arranged := make([][]string, last+1)
	for _, box := range g.boxes {
		arranged[rank[box]] = append(arranged[rank[box]], box)
	}

	// A pass sorts each row by the places of its boxes' neighbours. It takes several passes, since a pass also
	// moves the neighbours. No number of passes guarantees the fewest crossings, so a few are enough.
	place := map[string]float64{} // the distance of each box from the middle of its row
	for range 5 {
		for _, row := range arranged {
			slices.SortStableFunc(row, func(a, b string) int {
				return cmp.Compare(g.meanPlace(a, place), g.meanPlace(b, place))
			})
			for i, box := range row {
				place[box] = float64(i) - float64(len(row)-1)/2
			}
		}
	}

	return slices.DeleteFunc(arranged, func(row []string) bool { return len(row) == 0 })
}

// rankBoxes returns the length of the longest path that leads down to each box. It ignores cycles, and ranks boxes
// without lines to other boxes last.
func (g graph) rankBoxes() map[string]int {
	rank := map[string]int{}
	onPath := map[string]bool{} // the boxes from which the current call has come; a box that is reached again is a cycle

	// sink gives the box at least this depth, and places the boxes to which its lines lead below it.
	var sink func(box string, depth int)
	sink = func(box string, depth int) {
		old, isRanked := rank[box]
		isDeepEnough := isRanked && depth <= old
		if isDeepEnough || onPath[box] {
			return
		}

		rank[box] = depth
		onPath[box] = true
		for _, l := range g.lines {
			if l[0] == box {
				sink(l[1], depth+1)
			}
		}
		onPath[box] = false
	}

	for _, box := range g.boxes {
		sink(box, 0)
		hasLine := slices.ContainsFunc(g.lines, func(l [2]string) bool {
			return l[0] != l[1] && slices.Contains(l[:], box)
		})
		if !hasLine {
			rank[box] = len(g.boxes) // below all others, since a path has fewer lines than there are boxes
		}
	}

	return rank
}

// meanPlace returns the mean place of a box's neighbours, or the box's own place if it has no neighbours. A box
// that place does not have yet counts as in the middle of its row.
func (g graph) meanPlace(box string, place map[string]float64) float64 {
	sum := 0.0
	count := 0
	for _, l := range g.lines {
		if l[0] != l[1] && slices.Contains(l[:], box) {
			sum += place[l[0]] + place[l[1]] - place[box] // the place of the other end
			count++
		}
	}

	if count == 0 {
		return place[box]
	}

	return sum / float64(count)
}
