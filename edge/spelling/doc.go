// Package spelling says how far two names are from each other, so that an error
// can propose the name that was meant.
package spelling

// Distance is how many bytes have to be changed, added or taken away to make b
// of a: the Levenshtein distance. It is 0 for equal names.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
