package console

// NearestWord returns the one of the words that was probably meant; "" if all words are too far for a slip of the fingers.
func NearestWord(name string, words []string) string {
	best, fewest := "", 1+len(name)/3
	for _, w := range words {
		if d := editDistance(name, w); d <= fewest && (best == "" || d < editDistance(name, best)) {
			best = w
		}
	}
	return best
}

// editDistance counts letters to insert, delete, replace or swap with their neighbour
// (optimal string alignment).
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
