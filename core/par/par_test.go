package par

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-scheduler/berth/core/recovered"
)

// The ranges hold each row once, are at most as many as the workers, and are no smaller
// than the grain.
func TestRowsCoverDisjoint(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 64, 1000, 1001} {
		for _, workers := range []int{-1, 0, 1, 2, 3, 4, 7, 64, 2000} {
			for _, grain := range []int{-1, 0, 1, 3, 64, 1000, 5000} {
				var mu sync.Mutex
				var ranges []Range
				visits := make([]int, n) // a row that two ranges share is a data race, too
				Rows(n, workers, grain, func(r Range) {
					for i := r.From; i < r.To; i++ {
						visits[i]++
					}
					mu.Lock()
					defer mu.Unlock()
					ranges = append(ranges, r)
				})
				name := fmt.Sprintf("Rows(%d, %d, %d)", n, workers, grain)
				if slices.ContainsFunc(visits, func(v int) bool { return v != 1 }) {
					t.Fatalf("%s: visits %v", name, visits)
				}
				if len(ranges) > max(workers, 1) {
					t.Errorf("%s: %d ranges", name, len(ranges))
				}
				for _, r := range ranges {
					if n := r.To - r.From; n == 0 || len(ranges) > 1 && n < grain {
						t.Errorf("%s: a range of %d rows", name, n)
					}
				}
			}
		}
	}
}

// Each index is visited once, for any number of workers.
func TestEachVisitsAll(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 100} {
		for _, workers := range []int{-1, 0, 1, 2, 8} {
			visits := make([]int, n)
			Each(n, workers, func(i int) { visits[i]++ })
			if slices.ContainsFunc(visits, func(v int) bool { return v != 1 }) {
				t.Errorf("Each(%d, %d): visits %v", n, workers, visits)
			}
		}
	}
}

// A goroutine that is long with one index leaves the others to the rest.
func TestEachWaitsForNobody(t *testing.T) {
	var others sync.WaitGroup
	others.Add(8)
	Each(9, 2, func(i int) {
		if i == 0 {
			others.Wait()
			return
		}
		others.Done()
	})
}

// The number of workers does not change the result.
func TestSameResultForAnyWorkers(t *testing.T) {
	square := func(workers int) []int {
		out := make([]int, 1000)
		Rows(len(out), workers, 1, func(r Range) {
			for i := r.From; i < r.To; i++ {
				out[i] = i * i
			}
		})
		return out
	}
	for _, workers := range []int{2, 3, 8, 1000} {
		if !slices.Equal(square(workers), square(1)) {
			t.Errorf("%d workers: another result", workers)
		}
	}
}

// A panic reaches the caller, after every other range is done: nobody writes
// to the output any more when it is handled. Of several the first range's is
// raised.
func TestPanicIsRaisedInCaller(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		for _, bad := range []int{0, 3, 7} {
			done := make([]bool, 8)
			caught := func() (p any) {
				defer func() { p = recover() }()
				Rows(8, workers, 1, func(r Range) {
					for i := r.From; i < r.To; i++ {
						if i == bad || i == 7 {
							panic(fmt.Sprint("row ", i))
						}
						done[i] = true
					}
				})
				return nil
			}()
			p := recovered.From("", caught)
			if want := fmt.Sprint("row ", bad); p.Value != want {
				t.Errorf("%d workers: caught %v, want %v", workers, caught, want)
			}
			if workers > 1 && (!strings.HasPrefix(p.Site, "par_test.go:") || !strings.Contains(p.Stack, "TestPanicIsRaisedInCaller")) {
				t.Errorf("%d workers: raised at %s\n%s", workers, p.Site, p.Stack)
			}
			for i := range done {
				if sameRange(workers, i, bad) || sameRange(workers, i, 7) {
					continue
				}
				if !done[i] {
					t.Errorf("%d workers, row %d panics: row %d was not done", workers, bad, i)
				}
			}
		}
	}
}

func sameRange(workers, i, j int) bool { return i*workers/8 == j*workers/8 }
