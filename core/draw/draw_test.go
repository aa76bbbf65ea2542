package draw

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/table"
)

// Every number is drawn by some pod and attempt, about as often as the others,
// and 0 where there is nothing to choose.
func TestNumber(t *testing.T) {
	const n, pods = 7, 7000
	var drawn [n]int
	for i := range pods {
		drawn[Number(Seed(1, types.UID(fmt.Sprint(i%100)), 1+i/100), n)]++
	}
	for i, times := range drawn {
		if times < pods/n*8/10 || times > pods/n*12/10 {
			t.Errorf("%d was drawn %d times of %d", i, times, pods)
		}
	}
	if got := Number(1, 1) + Number(1, 0); got != 0 {
		t.Errorf("of nothing %d was drawn", got)
	}
}

// A sample has as many different rows as were asked for, or as there are; each tied row
// comes first about as often as the others, be they many or few.
func TestSample(t *testing.T) {
	for _, tc := range []struct{ rows, ties, n, want int }{{10, 10, 4, 4}, {1000, 5, 3, 3}, {1000, 5, 8, 5}, {100, 1, 8, 1}} {
		first := map[table.Row]int{}
		const rounds = 4000
		for seed := range rounds {
			got := Sample(Seed(uint64(seed), "p", 0), tc.ties, tc.n, Rows{
				Candidates: tc.rows,
				Candidate:  func(i int) table.Row { return table.Row(i) },
				Tied:       func(r table.Row) bool { return int(r) < tc.ties },
				Each: func(f func(table.Row)) {
					for r := range tc.ties {
						f(table.Row(r))
						f(table.Row(r))
					}
				},
			})
			sorted := slices.Sorted(slices.Values(got))
			if len(slices.Compact(sorted)) != tc.want || int(sorted[len(sorted)-1]) >= tc.ties {
				t.Fatalf("%+v: got %v", tc, got)
			}
			first[got[0]]++
		}
		for r := range tc.ties {
			if times := first[table.Row(r)]; times < rounds/tc.ties*8/10 || times > rounds/tc.ties*12/10 {
				t.Errorf("%+v: row %d came first %d times of %d", tc, r, times, rounds)
			}
		}
	}
}
